"""What accounts have."""

import strawberry

from app.ledger import model
from app.schema.described import object_type
from app.schema.scalars import BigInt
from app.schema.types.money import Money


@object_type
class Balance:
    """Amounts seen from the account's own normal side: positive is money it has."""

    posted: Money = strawberry.field(description="available + held.")
    held: Money = strawberry.field(description="Set aside by open holds and pending withdrawals.")
    available: Money = strawberry.field(description="What can be spent now.")
    sequence: BigInt | None = strawberry.field(
        description=(
            "Number of the last entry of this account; grows by one with each. Null where tracking is not TRACKED."
        )
    )

    @classmethod
    def of(cls, account: model.Account, balance: model.Balance) -> "Balance":
        """Show what an account has."""
        return cls(
            posted=Money.of_account(account, balance.available + balance.held),
            held=Money.of_account(account, balance.held),
            available=Money.of_account(account, balance.available),
            sequence=shown_sequence(account, balance.sequence),
        )


def shown_sequence(account: model.Account, sequence: int) -> BigInt | None:
    """Show the number of an entry; None where the account is hot, whose numbers only order its entries."""
    return None if account.hot else BigInt(sequence)

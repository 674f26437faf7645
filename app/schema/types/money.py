"""Amounts."""

import strawberry

from app.ledger import model, money
from app.schema.described import input_type, object_type
from app.schema.scalars import BigInt, CurrencyCode, DecimalText


@object_type
class Money:
    """An amount of one currency. Never a float anywhere."""

    minor_units: BigInt = strawberry.field(
        description="The exact amount in the currency's minor unit (centavo, cent, dong)."
    )
    decimal: DecimalText = strawberry.field(description="The same amount for people.")
    currency: CurrencyCode = strawberry.field(description="The currency of the amount.")

    @classmethod
    def of(cls, minor_units: int, currency: str) -> "Money":
        """Show an amount."""
        return cls(
            minor_units=BigInt(minor_units),
            decimal=DecimalText(money.Money(minor_units, currency).decimal),
            currency=CurrencyCode(currency),
        )

    @classmethod
    def of_account(cls, account: model.Account, signed: int) -> "Money":
        """Show a stored amount as the account's readers see it, from its normal side."""
        return cls.of(account.from_normal_side(signed), account.currency)


@input_type
class MoneyInput:
    """An amount of one currency."""

    minor_units: BigInt = strawberry.field(
        description="The exact amount in the currency's minor unit (centavo, cent, dong)."
    )
    currency: CurrencyCode = strawberry.field(description="The currency of the amount.")

    def to_money(self) -> money.Money:
        """Read the amount."""
        return money.Money(self.minor_units, self.currency)

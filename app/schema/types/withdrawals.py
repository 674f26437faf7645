"""Withdrawals: money on its way out to a bank."""

import strawberry

from app.ledger import model
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.ids import encode_withdrawal_id
from app.schema.scalars import Instant
from app.schema.types.accounts import Account, account_of_hold, transactions_of_hold
from app.schema.types.enums import WithdrawalStatus
from app.schema.types.money import Money
from app.schema.types.nodes import Node
from app.schema.types.transactions import Transaction


@object_type
class Withdrawal(Node):
    """Money on its way out to a bank: held at once, booked against the clearing account when the bank confirms, given back when it fails."""

    facts: strawberry.Private[model.Hold]
    """The hold that the withdrawal is to the ledger."""
    amount: Money = strawberry.field(description="How much is to go out.")
    status: WithdrawalStatus = strawberry.field(description="How far it has come.")
    external_reference: str | None = strawberry.field(
        description="Name of the withdrawal in the bank's system."
    )
    failure_reason: str | None = strawberry.field(description="Why the bank has refused.")
    created_at: Instant = strawberry.field(description="When the money was held.")
    settled_at: Instant | None = strawberry.field(
        description="When the bank's word was booked; null while the withdrawal is pending."
    )

    @classmethod
    def of(cls, hold: model.Hold) -> "Withdrawal":
        """Show a withdrawal to who may read its account, or has settled it."""
        return cls(
            id=strawberry.ID(encode_withdrawal_id(hold.id)),
            facts=hold,
            amount=Money.of(hold.amount, hold.currency),
            status=WithdrawalStatus(hold.status),
            external_reference=hold.external_reference,
            failure_reason=hold.failure_reason,
            created_at=Instant(hold.created_at),
            settled_at=None if hold.closed_at is None else Instant(hold.closed_at),
        )

    @strawberry.field(description="The account that the money comes from.")
    async def account(self, info: Info) -> Account:
        """Read the account; what it has is for who may read it."""
        return await account_of_hold(info, self.facts)

    @strawberry.field(
        description="The transactions that held the money and let it go, oldest first."
    )
    async def transactions(self, info: Info) -> list[Transaction]:
        """Read the transactions, as far as the caller may see them."""
        return await transactions_of_hold(info, self.facts)

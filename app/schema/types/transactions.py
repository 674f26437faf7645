"""Transactions and their legs, as any of their parties may see them."""

from typing import Self

import strawberry

from app.ledger import model
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.ids import encode_account_id, encode_transaction_id
from app.schema.scalars import CurrencyCode, Instant, JsonValue
from app.schema.types.enums import AccountPurpose, Direction
from app.schema.types.money import Money
from app.schema.types.nodes import Node


@object_type
class AccountSummary:
    """What a counterparty may know of an account. A HELD or STRIPE child bears its parent's id and code."""

    id: strawberry.ID = strawberry.field(description="Id of the account, or of the child's parent.")
    code: str | None = strawberry.field(
        description="Code of the account, or of the child's parent."
    )
    currency: CurrencyCode = strawberry.field(description="The one currency of the account.")
    purpose: AccountPurpose = strawberry.field(
        description="Whether this is the account itself or a child of it."
    )

    @classmethod
    def of_account(cls, account: model.Account) -> "AccountSummary":
        """Show an account to others."""
        return cls(
            id=strawberry.ID(encode_account_id(account.id)),
            code=account.code,
            currency=CurrencyCode(account.currency),
            purpose=account.purpose,
        )

    @classmethod
    def of_leg(cls, leg: model.Leg) -> "AccountSummary":
        """Show a leg's account to all parties of the transaction."""
        return cls(
            id=strawberry.ID(encode_account_id(leg.account_id)),
            code=leg.account_code,
            currency=CurrencyCode(leg.currency),
            purpose=leg.purpose,
        )


@object_type
class Leg:
    """One side of a transaction, as any of its parties may see it: no balances."""

    account: AccountSummary = strawberry.field(description="The account that the leg moves.")
    direction: Direction = strawberry.field(description="The side on which the leg stands.")
    amount: Money = strawberry.field(description="Always positive.")

    @classmethod
    def of(cls, leg: model.Leg) -> "Leg":
        """Show a leg."""
        return cls(
            account=AccountSummary.of_leg(leg),
            direction=Direction.CREDIT if leg.amount > 0 else Direction.DEBIT,
            amount=Money.of(abs(leg.amount), leg.currency),
        )


@object_type
class TransactionFields(Node):
    """What a transaction says of itself; `objects` adds where it leads to."""

    facts: strawberry.Private[model.Transaction]
    type: str = strawberry.field(
        description=(
            '"transfer", "deposit", "withdrawal", "hold", "capture", "release", "reversal", "refund", "sweep", '
            '"opening", or a partner\'s own.'
        )
    )
    description: str | None = strawberry.field(description="What its sender wrote.")
    external_reference: str | None = strawberry.field(
        description="Name of the same fact in another system, such as a bank's."
    )
    metadata: JsonValue | None = strawberry.field(description="What its sender attached.")
    effective_at: Instant = strawberry.field(
        description="When the fact happened, as the caller says; the posting time unless given."
    )
    posted_at: Instant = strawberry.field(
        description="When it was booked: the database's clock, one for all legs."
    )

    @classmethod
    def of(cls, transaction: model.Transaction) -> Self:
        """Show a transaction."""
        return cls(
            id=strawberry.ID(encode_transaction_id(transaction.id)),
            facts=transaction,
            type=transaction.type,
            description=transaction.description,
            external_reference=transaction.external_reference,
            metadata=None if transaction.metadata is None else JsonValue(transaction.metadata),
            effective_at=Instant(transaction.effective_at),
            posted_at=Instant(transaction.posted_at),
        )

    @strawberry.field(description="All sides; per currency they sum to zero.")
    def legs(self, info: Info) -> list[Leg]:
        """Show the sides, which may be many."""
        info.context.spend_items(len(self.facts.legs))
        return [Leg.of(leg) for leg in self.facts.legs]

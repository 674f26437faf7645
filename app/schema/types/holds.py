"""What is set aside: holds, and withdrawals, which to the ledger are holds too."""

from typing import Self

import strawberry

from app.ledger import model
from app.schema.described import object_type
from app.schema.ids import encode_hold_id, encode_withdrawal_id
from app.schema.scalars import Instant, JsonValue
from app.schema.types.enums import HoldStatus, WithdrawalStatus
from app.schema.types.money import Money
from app.schema.types.nodes import Node


@object_type
class HoldFields(Node):
    """What a hold says of itself; `objects` adds where it leads to."""

    facts: strawberry.Private[model.Hold]
    amount: Money = strawberry.field(description="How much was set aside.")
    captured: Money = strawberry.field(description="How much of it went on to somebody else.")
    status: HoldStatus = strawberry.field(description="Whether the money is still set aside.")
    expires_at: Instant | None = strawberry.field(
        description="When the hold is over by the database's clock; null for one that doesn't expire."
    )
    description: str | None = strawberry.field(description="What its sender wrote.")
    metadata: JsonValue | None = strawberry.field(description="What its sender attached.")
    created_at: Instant = strawberry.field(description="When the money was set aside.")

    @classmethod
    def of(cls, hold: model.Hold) -> Self:
        """Show a hold to who may read its account, or has placed it."""
        return cls(
            id=strawberry.ID(encode_hold_id(hold.id)),
            facts=hold,
            amount=Money.of(hold.amount, hold.currency),
            captured=Money.of(hold.captured, hold.currency),
            status=hold.status,
            expires_at=None if hold.expires_at is None else Instant(hold.expires_at),
            description=hold.description,
            metadata=None if hold.metadata is None else JsonValue(hold.metadata),
            created_at=Instant(hold.created_at),
        )

    @classmethod
    def found(cls, hold: model.Hold | None) -> Self | None:
        """Show what was found to who may read it; None where that is nothing, or a withdrawal."""
        if hold is None or hold.purpose is not model.HoldPurpose.HOLD:
            return None
        return cls.of(hold)


@object_type
class WithdrawalFields(Node):
    """What a withdrawal says of itself; `objects` adds where it leads to."""

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
    def of(cls, hold: model.Hold) -> Self:
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

    @classmethod
    def found(cls, hold: model.Hold | None) -> Self | None:
        """Show what was found to who may read it; None where that is nothing, or a hold."""
        if hold is None or hold.purpose is not model.HoldPurpose.WITHDRAWAL:
            return None
        return cls.of(hold)

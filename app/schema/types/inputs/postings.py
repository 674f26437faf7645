"""What operators book: any balanced legs, what takes transactions back, and the sweep of a hot account."""

import strawberry

from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.movements.reversals import RefundCommand, ReverseCommand
from app.ledger.movements.sweeps import SweepCommand
from app.schema.described import given, input_type
from app.schema.ids import decode_account_id, decode_transaction_id
from app.schema.scalars import BigInt, Instant, JsonValue
from app.schema.types.enums import Direction
from app.schema.types.inputs.shared import (
    DESCRIPTION_TEXT,
    KEY_TEXT,
    METADATA_TEXT,
    json_object,
)
from app.schema.types.money import MoneyInput


@input_type
class LegInput:
    """One side of a transaction."""

    account_id: strawberry.ID = strawberry.field(description="The account that the leg moves.")
    direction: Direction = strawberry.field(description="The side on which the leg stands.")
    amount: MoneyInput = strawberry.field(description="Positive.")
    if_sequence: BigInt | None = strawberry.field(
        default=strawberry.UNSET,
        description=(
            "Optimistic condition: refuse with SEQUENCE_MISMATCH unless the account's sequence is this before the "
            "posting."
        ),
    )

    def to_command(self) -> LegCommand:
        """Read the leg."""
        return LegCommand(
            account_id=decode_account_id(self.account_id),
            direction=self.direction,
            amount=self.amount.to_money(),
            if_sequence=given(self.if_sequence),
        )


@input_type
class PostTransactionInput:
    """Which legs to book, under which name."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    type: str = strawberry.field(
        description='Lower case words joined by "_"; the built-in names are taken.'
    )
    legs: list[LegInput] = strawberry.field(
        description="2 to 200. Per currency, debits equal credits."
    )
    effective_at: Instant | None = strawberry.field(
        default=strawberry.UNSET,
        description="When the fact happened; the posting time unless given.",
    )
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

    def to_command(self) -> PostTransactionCommand:
        """Read the command."""
        return PostTransactionCommand(
            key=self.idempotency_key,
            type=self.type,
            legs=tuple(leg.to_command() for leg in self.legs),
            effective_at=given(self.effective_at),
            description=given(self.description),
            metadata=json_object(self.metadata),
        )


@input_type
class ReverseTransactionInput:
    """Which transaction to take back."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    transaction_id: strawberry.ID = strawberry.field(description="The transaction.")
    reason: str = strawberry.field(
        description="Becomes the reversal's description; at most 500 characters."
    )

    def to_command(self) -> ReverseCommand:
        """Read the command."""
        return ReverseCommand(
            key=self.idempotency_key,
            transaction_id=decode_transaction_id(self.transaction_id),
            reason=self.reason,
        )


@input_type
class RefundTransactionInput:
    """How much of which transaction to give back."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    transaction_id: strawberry.ID = strawberry.field(
        description=(
            "A transaction that moved money between two accounts, in however many legs: a capture counts as what it "
            "moved in all, a STRIPED account as one. All its refunds together never exceed it."
        )
    )
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    reason: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Becomes the refund's description; at most 500 characters.",
    )

    def to_command(self) -> RefundCommand:
        """Read the command."""
        return RefundCommand(
            key=self.idempotency_key,
            transaction_id=decode_transaction_id(self.transaction_id),
            amount=self.amount.to_money(),
            reason=given(self.reason),
        )


@input_type
class SweepAccountInput:
    """Which account's children to gather."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    account_id: strawberry.ID = strawberry.field(description="A STRIPED account.")

    def to_command(self) -> SweepCommand:
        """Read the command."""
        return SweepCommand(key=self.idempotency_key, account_id=decode_account_id(self.account_id))

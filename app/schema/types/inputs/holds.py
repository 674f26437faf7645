"""Money that is set aside: holds, and withdrawals on their way to a bank."""

import strawberry

from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.movements.withdrawals import SettleWithdrawalCommand, WithdrawCommand
from app.schema.described import given, input_type
from app.schema.ids import decode_account_id, decode_hold_id, decode_withdrawal_id
from app.schema.scalars import Instant, JsonValue
from app.schema.types.enums import SettlementOutcome
from app.schema.types.inputs.shared import (
    DESCRIPTION_TEXT,
    KEY_TEXT,
    METADATA_TEXT,
    REFERENCE_TEXT,
    json_object,
)
from app.schema.types.money import MoneyInput


@input_type
class PlaceHoldInput:
    """How much to set aside, and until when."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    account_id: strawberry.ID = strawberry.field(description="The account that has the money.")
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    expires_at: Instant | None = strawberry.field(
        default=strawberry.UNSET, description="Judged by the database's clock."
    )
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

    def to_command(self) -> PlaceHoldCommand:
        """Read the command."""
        return PlaceHoldCommand(
            key=self.idempotency_key,
            account_id=decode_account_id(self.account_id),
            amount=self.amount.to_money(),
            expires_at=given(self.expires_at),
            description=given(self.description),
            metadata=json_object(self.metadata),
        )


@input_type
class CaptureHoldInput:
    """How much of a hold goes on, and to whom."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    hold_id: strawberry.ID = strawberry.field(description="The hold.")
    to_account_id: strawberry.ID = strawberry.field(description="The account that receives.")
    amount: MoneyInput | None = strawberry.field(
        default=strawberry.UNSET,
        description=("Default: all that is left. A capture is final: what it leaves is released."),
    )
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )

    def to_command(self) -> CaptureHoldCommand:
        """Read the command."""
        amount = given(self.amount)
        return CaptureHoldCommand(
            key=self.idempotency_key,
            hold_id=decode_hold_id(self.hold_id),
            to_account_id=decode_account_id(self.to_account_id),
            amount=None if amount is None else amount.to_money(),
            description=given(self.description),
        )


@input_type
class VoidHoldInput:
    """Which hold to give back."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    hold_id: strawberry.ID = strawberry.field(description="The hold.")

    def to_command(self) -> VoidHoldCommand:
        """Read the command."""
        return VoidHoldCommand(key=self.idempotency_key, hold_id=decode_hold_id(self.hold_id))


@input_type
class WithdrawInput:
    """How much is to go to a bank."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    account_id: strawberry.ID = strawberry.field(
        description="The account that pays; one of the caller's."
    )
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    external_reference: str | None = strawberry.field(
        default=strawberry.UNSET, description=REFERENCE_TEXT
    )
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

    def to_command(self) -> WithdrawCommand:
        """Read the command."""
        return WithdrawCommand(
            key=self.idempotency_key,
            account_id=decode_account_id(self.account_id),
            amount=self.amount.to_money(),
            external_reference=given(self.external_reference),
            description=given(self.description),
            metadata=json_object(self.metadata),
        )


@input_type
class SettleWithdrawalInput:
    """What the bank says of a withdrawal."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    withdrawal_id: strawberry.ID = strawberry.field(description="The withdrawal.")
    outcome: SettlementOutcome = strawberry.field(description="Whether the money has arrived.")
    external_reference: str | None = strawberry.field(
        default=strawberry.UNSET, description=REFERENCE_TEXT
    )
    failure_reason: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Why the bank has refused; at most 500 characters.",
    )

    def to_command(self) -> SettleWithdrawalCommand:
        """Read the command."""
        return SettleWithdrawalCommand(
            key=self.idempotency_key,
            withdrawal_id=decode_withdrawal_id(self.withdrawal_id),
            outcome=self.outcome,
            external_reference=given(self.external_reference),
            failure_reason=given(self.failure_reason),
        )

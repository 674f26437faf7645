"""Money that comes in, and that goes from wallet to wallet."""

import strawberry

from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.transfers import TransferCommand
from app.schema.described import given, input_type
from app.schema.ids import decode_account_id
from app.schema.scalars import Instant, JsonValue
from app.schema.types.inputs.shared import (
    DESCRIPTION_TEXT,
    KEY_TEXT,
    METADATA_TEXT,
    REFERENCE_TEXT,
    json_object,
)
from app.schema.types.money import MoneyInput


@input_type
class TransferInput:
    """How much to move, from where to where."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    from_account_id: strawberry.ID = strawberry.field(
        description="The account that pays; one of the caller's."
    )
    to_account_id: strawberry.ID = strawberry.field(description="The account that receives.")
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

    def to_command(self) -> TransferCommand:
        """Read the command."""
        return TransferCommand(
            key=self.idempotency_key,
            from_account_id=decode_account_id(self.from_account_id),
            to_account_id=decode_account_id(self.to_account_id),
            amount=self.amount.to_money(),
            description=given(self.description),
            metadata=json_object(self.metadata),
        )


@input_type
class TransferBatchInput:
    """Many transfers at once."""

    transfers: list[TransferInput] = strawberry.field(
        description="At most 1,000. Each has its own key."
    )
    atomic: bool | None = strawberry.field(
        default=False, description="true: all or nothing. false: each on its own."
    )


@input_type
class DepositInput:
    """How much money came in, and for whom."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
    account_id: strawberry.ID = strawberry.field(
        description=(
            "The account that receives. It is credited whatever its kind, which lowers an ASSET or an EXPENSE."
        )
    )
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    clearing_account_id: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description='Default: "system:bank_clearing:<currency>".',
    )
    external_reference: str | None = strawberry.field(
        default=strawberry.UNSET,
        description=REFERENCE_TEXT,
    )
    effective_at: Instant | None = strawberry.field(
        default=strawberry.UNSET,
        description="When the money came in; the posting time unless given.",
    )
    description: str | None = strawberry.field(
        default=strawberry.UNSET, description=DESCRIPTION_TEXT
    )
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

    @property
    def default_clearing(self) -> bool:
        """Whether the platform's own clearing account is meant."""
        return given(self.clearing_account_id) is None

    def to_command(self) -> DepositCommand:
        """Read the command; the clearing account is None where `default_clearing`."""
        clearing_account_id = given(self.clearing_account_id)
        return DepositCommand(
            key=self.idempotency_key,
            account_id=decode_account_id(self.account_id),
            clearing_account_id=None
            if clearing_account_id is None
            else decode_account_id(clearing_account_id),
            amount=self.amount.to_money(),
            external_reference=given(self.external_reference),
            effective_at=given(self.effective_at),
            description=given(self.description),
            metadata=json_object(self.metadata),
        )

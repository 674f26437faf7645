"""What mutations are given, turned into the ledger's commands."""

from typing import cast

import strawberry

from app.ledger.accounts import OpenAccountCommand
from app.ledger.model import Caller, Json
from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.transfers import TransferCommand
from app.schema.described import given, input_type
from app.schema.ids import decode_account_id
from app.schema.scalars import CurrencyCode, Instant, JsonValue
from app.schema.types.enums import AccountKind, BalanceTracking
from app.schema.types.money import MoneyInput

_KEY = (
    "Made by the client once per intention, before the first try, and sent again on every retry; 1 to 128 printable "
    "ASCII characters; unique per caller and kept for ever."
)
_DESCRIPTION = "At most 500 characters."
_METADATA = "An object of at most 4 KiB once encoded."


@input_type
class OpenAccountInput:
    """Which account to open, for whom."""

    idempotency_key: str = strawberry.field(description=_KEY)
    currency: CurrencyCode = strawberry.field(description="The one currency of the account.")
    code: str | None = strawberry.field(
        default=strawberry.UNSET,
        description='Unique name, 1 to 128 characters; those that begin with "system:" are the platform\'s.',
    )
    kind: AccountKind | None = strawberry.field(
        default=AccountKind.LIABILITY,
        description="Default LIABILITY, the only kind that WALLET may open.",
    )
    owner: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Default: the caller. OPERATE may name another subject, or null for the platform.",
    )
    allow_negative: bool | None = strawberry.field(default=False, description="OPERATE.")
    tracking: BalanceTracking | None = strawberry.field(
        default=BalanceTracking.TRACKED, description="OPERATE."
    )
    stripes: int | None = strawberry.field(
        default=strawberry.UNSET,
        description="Number of children of a STRIPED account, 2 to 256.",
    )
    metadata: JsonValue | None = strawberry.field(default=strawberry.UNSET, description=_METADATA)

    def to_command(self, caller: Caller) -> OpenAccountCommand:
        """Read the command; an owner that is left out is the caller."""
        return OpenAccountCommand(
            key=self.idempotency_key,
            currency=self.currency,
            owner=caller.subject if self.owner is strawberry.UNSET else self.owner,
            code=given(self.code),
            kind=self.kind or AccountKind.LIABILITY,
            allow_negative=bool(self.allow_negative),
            tracking=self.tracking or BalanceTracking.TRACKED,
            stripes=given(self.stripes),
            metadata=_json(self.metadata),
        )


@input_type
class TransferInput:
    """How much to move, from where to where."""

    idempotency_key: str = strawberry.field(description=_KEY)
    from_account_id: strawberry.ID = strawberry.field(
        description="The account that pays; one of the caller's."
    )
    to_account_id: strawberry.ID = strawberry.field(description="The account that receives.")
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    description: str | None = strawberry.field(default=strawberry.UNSET, description=_DESCRIPTION)
    metadata: JsonValue | None = strawberry.field(default=strawberry.UNSET, description=_METADATA)

    def to_command(self) -> TransferCommand:
        """Read the command."""
        return TransferCommand(
            key=self.idempotency_key,
            from_account_id=decode_account_id(self.from_account_id),
            to_account_id=decode_account_id(self.to_account_id),
            amount=self.amount.to_money(),
            description=given(self.description),
            metadata=_json(self.metadata),
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

    idempotency_key: str = strawberry.field(description=_KEY)
    account_id: strawberry.ID = strawberry.field(description="The account that receives.")
    amount: MoneyInput = strawberry.field(description="How much; positive.")
    clearing_account_id: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description='Default: "system:bank_clearing:<currency>".',
    )
    external_reference: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Name of the same fact in another system; at most 128 characters.",
    )
    effective_at: Instant | None = strawberry.field(
        default=strawberry.UNSET,
        description="When the money came in; the posting time unless given.",
    )
    description: str | None = strawberry.field(default=strawberry.UNSET, description=_DESCRIPTION)
    metadata: JsonValue | None = strawberry.field(default=strawberry.UNSET, description=_METADATA)

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
            metadata=_json(self.metadata),
        )


def _json(value: JsonValue | None) -> Json | None:
    # The ledger refuses what isn't an object, in words of its own.
    return cast("Json | None", given(value))

"""Opening accounts, and what becomes of them."""

import strawberry

from app.ledger.accounts import OpenAccountCommand
from app.ledger.administration import SetAccountStatusCommand
from app.ledger.model import Caller
from app.schema.described import given, input_type
from app.schema.ids import decode_account_id
from app.schema.scalars import CurrencyCode, JsonValue
from app.schema.types.enums import AccountKind, AccountStatus, BalanceTracking
from app.schema.types.inputs.shared import KEY_TEXT, METADATA_TEXT, json_object


@input_type
class OpenAccountInput:
    """Which account to open, for whom."""

    idempotency_key: str = strawberry.field(description=KEY_TEXT)
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
    metadata: JsonValue | None = strawberry.field(
        default=strawberry.UNSET, description=METADATA_TEXT
    )

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
            metadata=json_object(self.metadata),
        )


@input_type
class SetAccountStatusInput:
    """What is to become of an account."""

    account_id: strawberry.ID = strawberry.field(description="The account.")
    status: AccountStatus = strawberry.field(description="What it is to be from now on.")
    reason: str | None = strawberry.field(
        default=strawberry.UNSET, description="Why; at most 500 characters."
    )

    def to_command(self) -> SetAccountStatusCommand:
        """Read the command."""
        return SetAccountStatusCommand(
            account_id=decode_account_id(self.account_id),
            status=self.status,
            reason=given(self.reason),
        )

"""Lists of accounts: which are wanted, and a page of them."""

import strawberry

from app.ledger import pages
from app.ledger.rules import storable
from app.schema.described import given, input_type, object_type
from app.schema.errors import bad_request
from app.schema.scalars import CurrencyCode
from app.schema.types.connections import CountedConnection
from app.schema.types.enums import AccountKind, AccountStatus
from app.schema.types.objects import Account


@input_type
class AccountFilter:
    """Which accounts are wanted: those that meet every condition given."""

    owner: str | None = strawberry.field(
        default=strawberry.UNSET, description="Subject that owns the account."
    )
    code_prefix: str | None = strawberry.field(
        default=strawberry.UNSET, description="How the account's code begins."
    )
    currency: CurrencyCode | None = strawberry.field(
        default=strawberry.UNSET, description="The account's currency."
    )
    kind: AccountKind | None = strawberry.field(
        default=strawberry.UNSET, description="The account's kind."
    )
    status: AccountStatus | None = strawberry.field(
        default=strawberry.UNSET, description="The account's status."
    )

    def to_wanted(self) -> pages.AccountFilter:
        """Read the filter; raises BAD_REQUEST for a text that no account can have."""
        owner, code_prefix = given(self.owner), given(self.code_prefix)
        if not all(text is None or storable(text) for text in (owner, code_prefix)):
            raise bad_request("Codes and owners have neither U+0000 nor lone surrogates.")
        return pages.AccountFilter(
            owner=owner,
            code_prefix=code_prefix,
            currency=given(self.currency),
            kind=given(self.kind),
            status=given(self.status),
        )


@object_type
class AccountConnection(CountedConnection[Account]):
    """A page of accounts, oldest first."""

"""The caller and the caller's accounts."""

from functools import partial
from typing import Annotated, Final

import strawberry

from app.ledger import model, pages
from app.ledger.reader import Reader
from app.schema.context import Info
from app.schema.cursors import account_cursor, read_account_cursor
from app.schema.described import object_type
from app.schema.types.account_lists import AccountConnection, AccountFilter
from app.schema.types.connections import After, Before, First, Last, page_request
from app.schema.types.enums import Scope
from app.schema.types.objects import Account


@object_type
class Viewer:
    """Who asks, as the token says."""

    caller: strawberry.Private[model.Caller]
    subject: str = strawberry.field(description="The token's `sub`.")
    scopes: list[Scope] = strawberry.field(description="What the token allows.")

    @classmethod
    def of(cls, caller: model.Caller) -> "Viewer":
        """Show callers themselves."""
        return cls(caller=caller, subject=caller.subject, scopes=sorted(caller.scopes))

    @strawberry.field(description="The caller's own accounts, oldest first.")
    async def accounts(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        filter: Annotated[
            AccountFilter | None, strawberry.argument(description="Only these; all unless given.")
        ] = strawberry.UNSET,
    ) -> AccountConnection:
        """Read a page of the caller's accounts."""
        caller = self.caller
        request = page_request(
            first, after, last, before, read=partial(read_account_cursor, caller.subject)
        )
        wanted = pages.AccountFilter() if not filter else filter.to_wanted()
        if wanted.owner not in {None, caller.subject}:
            return AccountConnection.counted(_NOBODY, Account.of, str, _count_nobody)
        page = await info.context.reads.once(
            lambda reader: reader.own_accounts(caller, wanted, request)
        )
        return AccountConnection.counted(
            page,
            Account.of,
            lambda account: account_cursor(caller.subject, account.id),
            lambda reader: reader.count_own_accounts(caller, wanted),
        )


_NOBODY: Final[pages.Page[model.Account]] = pages.Page((), has_next=False, has_previous=False)
"""The caller's accounts that belong to somebody else."""


async def _count_nobody(_reader: Reader) -> int:
    return 0

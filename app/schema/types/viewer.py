"""The caller and the caller's accounts."""

from typing import Annotated

import strawberry

from app.ledger import model, pages
from app.ledger.rules import storable
from app.schema.context import Info
from app.schema.cursors import account_cursor, read_account_cursor
from app.schema.described import given, input_type, object_type
from app.schema.errors import bad_request
from app.schema.scalars import BigInt, CurrencyCode
from app.schema.types.accounts import Account
from app.schema.types.enums import AccountKind, AccountStatus, Scope
from app.schema.types.nodes import After, Before, First, Last, PageInfo, page_request


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
        code_prefix = given(self.code_prefix)
        if code_prefix is not None and not storable(code_prefix):
            raise bad_request("A code has neither U+0000 nor lone surrogates.")
        return pages.AccountFilter(
            code_prefix=code_prefix,
            currency=given(self.currency),
            kind=given(self.kind),
            status=given(self.status),
        )


@object_type
class AccountEdge:
    """An account in a list, with its place."""

    cursor: str = strawberry.field(description="The account's place in the list.")
    node: Account = strawberry.field(description="The account.")


@object_type
class AccountConnection:
    """A page of accounts, oldest first."""

    owner: strawberry.Private[model.Caller]
    wanted: strawberry.Private[pages.AccountFilter | None]
    """None where no account can be meant."""
    edges: list[AccountEdge] = strawberry.field(description="The accounts with their cursors.")
    nodes: list[Account] = strawberry.field(description="The accounts alone.")
    page_info: PageInfo = strawberry.field(description="Where the page stands.")

    @classmethod
    def of(
        cls,
        owner: model.Caller,
        wanted: pages.AccountFilter | None,
        page: pages.Page[model.Account],
    ) -> "AccountConnection":
        """Show a page of the owner's accounts."""
        nodes = [Account.of(account) for account in page.items]
        cursors = [account_cursor(owner.subject, account.id) for account in page.items]
        return cls(
            owner=owner,
            wanted=wanted,
            edges=[
                AccountEdge(cursor=cursor, node=node)
                for cursor, node in zip(cursors, nodes, strict=True)
            ],
            nodes=nodes,
            page_info=PageInfo.of(page, cursors),
        )

    @strawberry.field(
        description="Null where an exact count would have to read more than 10,000 rows."
    )
    async def total_count(self, info: Info) -> BigInt | None:
        """Count the accounts that the filter lets through."""
        wanted = self.wanted
        if wanted is None:
            return BigInt(0)
        count = await info.context.reads.once(
            lambda reader: reader.count_own_accounts(self.owner, wanted)
        )
        return None if count is None else BigInt(count)


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
        caller, after, before = self.caller, given(after), given(before)
        request = page_request(
            given(first),
            given(last),
            after=None if after is None else read_account_cursor(caller.subject, after),
            before=None if before is None else read_account_cursor(caller.subject, before),
        )
        wanted = pages.AccountFilter() if not filter else filter.to_wanted()
        owner = given(filter.owner) if filter else None
        if owner is not None and owner != caller.subject:
            nobody: pages.Page[model.Account] = pages.Page((), has_next=False, has_previous=False)
            return AccountConnection.of(caller, None, nobody)
        page = await info.context.reads.once(
            lambda reader: reader.own_accounts(caller, wanted, request)
        )
        return AccountConnection.of(caller, wanted, page)

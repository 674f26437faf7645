"""Accounts, what they have, and their history."""

from typing import Annotated

import strawberry

from app.ledger import model, pages
from app.schema.context import Info
from app.schema.cursors import entry_cursor, read_entry_cursor
from app.schema.described import given, object_type
from app.schema.ids import encode_account_id, encode_entry_id
from app.schema.scalars import BigInt, CurrencyCode, Instant, JsonValue
from app.schema.types.entry_filter import EntryFilter, EntryOrder
from app.schema.types.enums import AccountKind, AccountStatus, BalanceTracking, Direction
from app.schema.types.money import Money
from app.schema.types.nodes import After, Before, First, Last, Node, PageInfo, page_request
from app.schema.types.transactions import Transaction


@object_type
class Balance:
    """Amounts seen from the account's own normal side: positive is money it has."""

    posted: Money = strawberry.field(description="available + held.")
    held: Money = strawberry.field(description="Set aside by open holds and pending withdrawals.")
    available: Money = strawberry.field(description="What can be spent now.")
    sequence: BigInt | None = strawberry.field(
        description=(
            "Number of the last entry of this account; grows by one with each. Null where tracking is not TRACKED."
        )
    )

    @classmethod
    def of(cls, account: model.Account, balance: model.Balance) -> "Balance":
        """Show what an account has."""
        available = account.from_normal_side(balance.available)
        held = account.from_normal_side(balance.held)
        return cls(
            posted=Money.of(available + held, account.currency),
            held=Money.of(held, account.currency),
            available=Money.of(available, account.currency),
            sequence=_numbered(account, balance.sequence),
        )


@object_type
class Account(Node):
    """A place where money of one currency is; its balance is the sum of its entries."""

    key: strawberry.Private[model.Account]
    code: str | None = strawberry.field(
        description=(
            'Unique name for people and partners, such as "merchant:123:available" or '
            '"system:bank_clearing:BRL".'
        )
    )
    owner: str | None = strawberry.field(
        description="Subject (the token's `sub`) that owns the account; null for the platform's own accounts."
    )
    kind: AccountKind = strawberry.field(description="Fixes the side on which the account grows.")
    normal_balance: Direction = strawberry.field(
        description="The side on which this kind of account grows."
    )
    currency: CurrencyCode = strawberry.field(description="The one currency of the account.")
    status: AccountStatus = strawberry.field(description="Whether money may move.")
    allow_negative: bool = strawberry.field(description="Whether the balance may fall below zero.")
    tracking: BalanceTracking = strawberry.field(description="How the account answers contention.")
    metadata: JsonValue | None = strawberry.field(description="What its opener attached.")
    created_at: Instant = strawberry.field(description="When it was opened.")

    @classmethod
    def of(cls, account: model.Account) -> "Account":
        """Show an account to who may read it."""
        return cls(
            id=strawberry.ID(encode_account_id(account.id)),
            key=account,
            code=account.code,
            owner=account.owner,
            kind=account.kind,
            normal_balance=account.normal_balance,
            currency=CurrencyCode(account.currency),
            status=account.status,
            allow_negative=account.allow_negative,
            tracking=account.tracking,
            metadata=None if account.metadata is None else JsonValue(account.metadata),
            created_at=Instant(account.created_at),
        )

    @strawberry.field(description="Current, strongly consistent.")
    async def balance(self, info: Info) -> Balance:
        """Read what the account has now."""
        return Balance.of(self.key, await info.context.reads.balances.load(self.key.id))

    @strawberry.field(
        description="The posted balance as it stood at that instant (by posting time), reproducible for ever."
    )
    async def balance_at(
        self,
        info: Info,
        at: Annotated[Instant, strawberry.argument(description="Postings at it are included.")],
    ) -> Money:
        """Read what the account had then."""
        posted = await info.context.reads.balances_at.load((self.key.id, at))
        return Money.of(self.key.from_normal_side(posted), self.key.currency)

    @strawberry.field(
        description=(
            "History, newest first unless asked otherwise; gapless per-account sequence; cursors stay valid for ever "
            "and belong to this account."
        )
    )
    async def entries(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        filter: Annotated[
            EntryFilter | None, strawberry.argument(description="Only these; all unless given.")
        ] = strawberry.UNSET,
        order: Annotated[
            EntryOrder | None, strawberry.argument(description="The order of the list.")
        ] = EntryOrder.NEWEST_FIRST,
    ) -> "EntryConnection":
        """Read a page of the history."""
        account, after, before = self.key, given(after), given(before)
        request = page_request(
            given(first),
            given(last),
            after=None if after is None else read_entry_cursor(account.id, after),
            before=None if before is None else read_entry_cursor(account.id, before),
        )
        wanted = pages.EntryFilter() if not filter else filter.to_wanted()
        page = await info.context.reads.once(
            lambda reader: reader.entry_page(
                account, wanted, request, newest_first=order is not EntryOrder.OLDEST_FIRST
            )
        )
        return EntryConnection.of(self, wanted, page)


@object_type
class Entry(Node):
    """One line of one account's history; only who may read the account sees it."""

    key: strawberry.Private[model.Entry]
    booked_by: strawberry.Private[model.Transaction | None]
    """The transaction, where it is at hand already."""
    account: Account = strawberry.field(description="The account whose history this is.")
    sequence: BigInt | None = strawberry.field(
        description=(
            "1, 2, 3, ... in the account's own order, without gaps. Null where the account's tracking is not TRACKED."
        )
    )
    direction: Direction = strawberry.field(description="The side on which the entry stands.")
    amount: Money = strawberry.field(
        description="Signed from the account's normal side: positive raises its balance."
    )
    balance_after: Money | None = strawberry.field(
        description="The account's available balance right after this entry. Null where tracking is DERIVED."
    )
    posted_at: Instant = strawberry.field(description="When it was booked.")

    @classmethod
    def of(
        cls, entry: model.Entry, account: Account, booked_by: model.Transaction | None = None
    ) -> "Entry":
        """Show an entry of an account to who may read the account."""
        currency = entry.account.currency
        after = entry.account.from_normal_side(entry.balance_after)
        derived = entry.account.tracking is model.BalanceTracking.DERIVED
        return cls(
            id=strawberry.ID(encode_entry_id(entry.account.id, entry.sequence)),
            key=entry,
            booked_by=booked_by,
            account=account,
            sequence=_numbered(entry.account, entry.sequence),
            direction=entry.direction,
            amount=Money.of(entry.account.from_normal_side(entry.amount), currency),
            balance_after=None if derived else Money.of(after, currency),
            posted_at=Instant(entry.posted_at),
        )

    @strawberry.field(description="The transaction that booked the entry.")
    async def transaction(self, info: Info) -> Transaction:
        """Read the transaction; whoever may read one of its accounts may see it."""
        if self.booked_by is not None:
            return Transaction.of(self.booked_by)
        found = await info.context.reads.transactions.load(self.key.transaction_id)
        if found is None:
            raise LookupError("an entry has no transaction that its reader may see")
        return Transaction.of(found)


@object_type
class EntryEdge:
    """An entry in a list, with its place."""

    cursor: str = strawberry.field(
        description="The entry's place in the account's history; also good as `after` of entryPosted."
    )
    node: Entry = strawberry.field(description="The entry.")


@object_type
class EntryConnection:
    """A page of an account's history."""

    account: strawberry.Private[model.Account]
    wanted: strawberry.Private[pages.EntryFilter]
    edges: list[EntryEdge] = strawberry.field(description="The entries with their cursors.")
    nodes: list[Entry] = strawberry.field(description="The entries alone.")
    page_info: PageInfo = strawberry.field(description="Where the page stands.")

    @classmethod
    def of(
        cls, account: Account, wanted: pages.EntryFilter, page: pages.Page[model.Entry]
    ) -> "EntryConnection":
        """Show a page of the account's history."""
        nodes = [Entry.of(entry, account) for entry in page.items]
        cursors = [entry_cursor(account.key.id, entry.sequence) for entry in page.items]
        return cls(
            account=account.key,
            wanted=wanted,
            edges=[
                EntryEdge(cursor=cursor, node=node)
                for cursor, node in zip(cursors, nodes, strict=True)
            ],
            nodes=nodes,
            page_info=PageInfo.of(page, cursors),
        )

    @strawberry.field(
        description="Null where an exact count would have to read more than 10,000 rows."
    )
    async def total_count(self, info: Info) -> BigInt | None:
        """Count the entries that the filter lets through."""
        count = await info.context.reads.once(
            lambda reader: reader.count_entries(self.account, self.wanted)
        )
        return None if count is None else BigInt(count)


def _numbered(account: model.Account, sequence: int) -> BigInt | None:
    return BigInt(sequence) if account.tracking is model.BalanceTracking.TRACKED else None

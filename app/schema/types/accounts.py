"""Accounts, their history, and what is set aside of their money: types that lead to each other."""

from functools import partial
from typing import Annotated

import strawberry

from app.ledger import model, pages
from app.schema.context import Info
from app.schema.cursors import entry_cursor, hold_cursor, read_entry_cursor, read_hold_cursor
from app.schema.described import given, object_type
from app.schema.ids import encode_account_id, encode_entry_id, encode_hold_id
from app.schema.scalars import BigInt, CurrencyCode, Instant, JsonValue
from app.schema.types.balances import Balance, shown_sequence
from app.schema.types.connections import (
    After,
    Before,
    Connection,
    CountedConnection,
    First,
    Last,
    page_request,
)
from app.schema.types.entry_filter import EntryFilter, EntryOrder
from app.schema.types.enums import (
    AccountKind,
    AccountStatus,
    BalanceTracking,
    Direction,
    HoldStatus,
)
from app.schema.types.money import Money
from app.schema.types.nodes import Node
from app.schema.types.transactions import Transaction


@object_type
class Account(Node):
    """A place where money of one currency is; its balance is the sum of its entries."""

    facts: strawberry.Private[model.Account]
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
            facts=account,
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
        account = self._for_reader(info)
        return Balance.of(account, await info.context.reads.balances.load(account.id))

    @strawberry.field(
        description="The posted balance as it stood at that instant (by posting time), reproducible for ever."
    )
    async def balance_at(
        self,
        info: Info,
        at: Annotated[Instant, strawberry.argument(description="Postings at it are included.")],
    ) -> Money:
        """Read what the account had then."""
        account = self._for_reader(info)
        posted = await info.context.reads.balances_at.load((account.id, at))
        return Money.of_account(account, posted)

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
        account = self._for_reader(info)
        request = page_request(
            first, after, last, before, read=partial(read_entry_cursor, account.id)
        )
        wanted = pages.EntryFilter() if not filter else filter.to_wanted()
        page = await info.context.reads.once(
            lambda reader: reader.entry_page(
                account, wanted, request, newest_first=order is not EntryOrder.OLDEST_FIRST
            )
        )
        return EntryConnection.counted(
            page,
            lambda entry: Entry.of(entry, self),
            lambda entry: entry_cursor(account.id, entry.sequence),
            lambda reader: reader.count_entries(account, wanted),
        )

    @strawberry.field(description="Holds on the account's money, newest first.")
    async def holds(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        status: Annotated[
            HoldStatus | None, strawberry.argument(description="Only these; all unless given.")
        ] = strawberry.UNSET,
    ) -> "HoldConnection":
        """Read a page of the account's holds."""
        account = self._for_reader(info)
        request = page_request(
            first, after, last, before, read=partial(read_hold_cursor, account.id)
        )
        page = await info.context.reads.once(
            lambda reader: reader.holds_page(account, given(status), request)
        )
        return HoldConnection.of(page, Hold.of, lambda hold: hold_cursor(account.id, hold.id))

    def _for_reader(self, info: Info) -> model.Account:
        """Hand out the account for reading what it has; raises MissingScopeError where the caller may not.

        Who may only operate is shown which account was opened, or bears a hold, and nothing of its money.
        """
        if not info.context.caller.may_read(self.facts):
            raise model.MissingScopeError((model.Scope.AUDIT,))
        return self.facts


@object_type
class Entry(Node):
    """One line of one account's history; only who may read the account sees it."""

    facts: strawberry.Private[model.Entry]
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
        description="The account's available balance right after this entry. Null where tracking is DERIVED, and for a moment where another posting on a STRIPED account is stuck."
    )
    posted_at: Instant = strawberry.field(description="When it was booked.")

    @classmethod
    def of(
        cls, entry: model.Entry, account: Account, booked_by: model.Transaction | None = None
    ) -> "Entry":
        """Show an entry of an account to who may read the account."""
        after = entry.balance_after
        return cls(
            id=strawberry.ID(encode_entry_id(entry.account.id, entry.sequence)),
            facts=entry,
            booked_by=booked_by,
            account=account,
            sequence=shown_sequence(entry.account, entry.sequence),
            direction=entry.direction,
            amount=Money.of_account(entry.account, entry.amount),
            balance_after=None if after is None else Money.of_account(entry.account, after),
            posted_at=Instant(entry.posted_at),
        )

    @strawberry.field(description="The transaction that booked the entry.")
    async def transaction(self, info: Info) -> Transaction:
        """Read the transaction; whoever may read one of its accounts may see it."""
        if self.booked_by is not None:
            return Transaction.of(self.booked_by)
        found = await info.context.reads.transactions.load(self.facts.transaction_id)
        if found is None:
            raise LookupError("an entry has no transaction that its reader may see")
        return Transaction.of(found)


@object_type
class EntryConnection(CountedConnection[Entry]):
    """A page of an account's history."""


@object_type
class Hold(Node):
    """Money set aside in double entry: moved from the account into its own held child account, so it can't be spent twice."""

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
    def of(cls, hold: model.Hold) -> "Hold":
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

    @strawberry.field(description="The account whose money is set aside.")
    async def account(self, info: Info) -> Account:
        """Read the account; what it has is for who may read it."""
        return await account_of_hold(info, self.facts)

    @strawberry.field(description="All transactions of this hold, oldest first.")
    async def transactions(self, info: Info) -> list[Transaction]:
        """Read the transactions that placed and ended the hold, as far as the caller may see them."""
        return await transactions_of_hold(info, self.facts)


@object_type
class HoldConnection(Connection[Hold]):
    """A page of an account's holds."""


async def account_of_hold(info: Info, hold: model.Hold) -> Account:
    """Read the account that a hold, or a withdrawal, was taken from."""
    return Account.of(await info.context.reads.accounts_of_holds.load(hold.id))


async def transactions_of_hold(info: Info, hold: model.Hold) -> list[Transaction]:
    """Read the transactions of a hold, or of a withdrawal, as far as the caller may see them."""
    found = await info.context.reads.transactions_of_holds.load(hold.id)
    return [Transaction.of(transaction) for transaction in found]

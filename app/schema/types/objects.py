"""Accounts, entries, transactions, holds and withdrawals as they lead to each other: each of them names others of them.

What one of them says of itself stands in a module of its own.
"""

from functools import partial
from typing import Annotated

import strawberry

from app.ledger import model, pages
from app.schema.context import Info
from app.schema.cursors import entry_cursor, read_entry_cursor
from app.schema.described import object_type
from app.schema.ids import encode_entry_id
from app.schema.scalars import BigInt, Instant
from app.schema.types.accounts import AccountFields
from app.schema.types.balances import shown_sequence
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
from app.schema.types.enums import Direction
from app.schema.types.hold_lists import HoldList, HoldStatusWanted, WithdrawalStatusWanted
from app.schema.types.holds import HoldFields, WithdrawalFields
from app.schema.types.money import Money
from app.schema.types.nodes import Node
from app.schema.types.transactions import TransactionFields


@object_type
class Account(AccountFields):
    """A place where money of one currency is; its balance is the sum of its entries."""

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
        status: HoldStatusWanted = strawberry.UNSET,
    ) -> "HoldConnection":
        """Read a page of the account's holds."""
        holds = HoldList(model.HoldPurpose.HOLD, self._for_reader(info))
        request = page_request(first, after, last, before, read=holds.read_cursor)
        return HoldConnection.of(await holds.page(info, status, request), Hold.of, holds.cursor)

    @strawberry.field(description="Withdrawals of the account's money, newest first.")
    async def withdrawals(
        self,
        info: Info,
        *,
        first: First = strawberry.UNSET,
        after: After = strawberry.UNSET,
        last: Last = strawberry.UNSET,
        before: Before = strawberry.UNSET,
        status: WithdrawalStatusWanted = strawberry.UNSET,
    ) -> "WithdrawalConnection":
        """Read a page of the account's withdrawals."""
        holds = HoldList(model.HoldPurpose.WITHDRAWAL, self._for_reader(info))
        request = page_request(first, after, last, before, read=holds.read_cursor)
        page = await holds.page(info, status, request)
        return WithdrawalConnection.of(page, Withdrawal.of, holds.cursor)


@object_type
class Transaction(TransactionFields):
    """A business fact, atomic and immutable. Per currency its legs sum to zero. Visible to whoever may read one of its accounts."""

    @strawberry.field(description="The transaction that this one reverses or refunds.")
    async def reverses(self, info: Info) -> "Transaction | None":
        """Read the transaction that this one takes back."""
        if self.facts.reverses_id is None:
            return None
        found = await info.context.reads.transactions.load(self.facts.reverses_id)
        return None if found is None else Transaction.of(found)

    @strawberry.field(description="The transactions that reverse or refund this one, oldest first.")
    async def reversed_by(self, info: Info) -> list["Transaction"]:
        """Read the transactions that take this one back, as far as the caller may see them."""
        reads = info.context.reads
        ids = await reads.reversals.load(self.facts.id)
        info.context.spend_items(len(ids))
        found = await reads.transactions.load_many(ids)
        return [Transaction.of(transaction) for transaction in found if transaction is not None]

    @strawberry.field(
        description=(
            "The hold that this transaction places or ends; null where it does neither, and where the caller may not "
            "read the hold's account."
        )
    )
    async def hold(self, info: Info) -> "Hold | None":
        """Read the hold as it stands now."""
        return Hold.found(await self._set_aside(info))

    @strawberry.field(
        description=(
            "The withdrawal that this transaction begins or settles; null where it does neither, and where the caller "
            "may not read the withdrawal's account."
        )
    )
    async def withdrawal(self, info: Info) -> "Withdrawal | None":
        """Read the withdrawal as it stands now."""
        return Withdrawal.found(await self._set_aside(info))

    async def _set_aside(self, info: Info) -> model.Hold | None:
        hold_id = self.facts.hold_id
        return None if hold_id is None else await info.context.reads.holds.load(hold_id)


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
class Hold(HoldFields):
    """Money set aside in double entry: moved from the account into its own held child account, so it can't be spent twice."""

    @strawberry.field(description="The account whose money is set aside.")
    async def account(self, info: Info) -> Account:
        """Read the account; what it has is for who may read it."""
        return await _account_of(info, self.facts)

    @strawberry.field(description="All transactions of this hold, oldest first.")
    async def transactions(self, info: Info) -> list[Transaction]:
        """Read the transactions that placed and ended the hold, as far as the caller may see them."""
        return await _transactions_of(info, self.facts)


@object_type
class Withdrawal(WithdrawalFields):
    """Money on its way out to a bank: held at once, booked against the clearing account when the bank confirms, given back when it fails."""

    @strawberry.field(description="The account that the money comes from.")
    async def account(self, info: Info) -> Account:
        """Read the account; what it has is for who may read it."""
        return await _account_of(info, self.facts)

    @strawberry.field(
        description="The transactions that held the money and let it go, oldest first."
    )
    async def transactions(self, info: Info) -> list[Transaction]:
        """Read the transactions, as far as the caller may see them."""
        return await _transactions_of(info, self.facts)


@object_type
class HoldConnection(Connection[Hold]):
    """A page of holds, newest first."""


@object_type
class WithdrawalConnection(Connection[Withdrawal]):
    """A page of withdrawals, newest first."""


async def _account_of(info: Info, hold: model.Hold) -> Account:
    """Read the account that a hold, or a withdrawal, was taken from."""
    return Account.of(await info.context.reads.accounts_of_holds.load(hold.id))


async def _transactions_of(info: Info, hold: model.Hold) -> list[Transaction]:
    """Read the transactions of a hold, or of a withdrawal, as far as the caller may see them."""
    found = await info.context.reads.transactions_of_holds.load(hold.id)
    return [Transaction.of(transaction) for transaction in found]

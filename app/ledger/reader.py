"""What callers may read of the ledger; nobody is shown what isn't theirs.

Methods that take a caller judge rights themselves, so that no way of calling them can forget to. Methods that take an
`Account`, or ids of accounts alone, were handed ones that the caller may read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.database import Database
from app.ledger import reading
from app.ledger.model import (
    Account,
    Balance,
    Caller,
    Entry,
    Hold,
    Scope,
    Transaction,
)
from app.ledger.pages import (
    AccountFilter,
    EntryFilter,
    HoldFilter,
    Page,
    PageRequest,
    TransactionFilter,
)
from app.ledger.reading import histories

_FOLLOWERS_PATIENCE_SECONDS: Final = 0.02


class Reader:
    """Reads the newest committed state."""

    def __init__(self, database: Database) -> None:
        """Take a pool for reading."""
        self._database = database

    async def accounts(self, caller: Caller, ids: Sequence[UUID]) -> Mapping[UUID, Account]:
        """Read those of the accounts that the caller may read."""
        async with self._database.read_only() as connection:
            found = await reading.accounts_by_id(connection, ids)
        return {
            account_id: account for account_id, account in found.items() if caller.may_read(account)
        }

    async def account_by_code(self, caller: Caller, code: str) -> Account | None:
        """Read the account with this code, if the caller may read it."""
        async with self._database.read_only() as connection:
            account = await reading.account_by_code(connection, code)
        return account if account is not None and caller.may_read(account) else None

    async def payee(self, code: str) -> Account | None:
        """Find whom one is about to pay: any account that has a code and an owner."""
        async with self._database.read_only() as connection:
            account = await reading.account_by_code(connection, code)
        return account if account is not None and account.owner is not None else None

    async def own_accounts(
        self, caller: Caller, wanted: AccountFilter, page: PageRequest[UUID]
    ) -> Page[Account]:
        """Read a page of the caller's accounts, oldest first; empty for who may not read any."""
        if not caller.scopes.intersection({Scope.WALLET, Scope.AUDIT}):
            return Page((), has_next=False, has_previous=False)
        own = replace(wanted, owner=caller.subject)
        async with self._database.read_only() as connection:
            return await reading.accounts_page(connection, own, page)

    async def count_own_accounts(self, caller: Caller, wanted: AccountFilter) -> int | None:
        """Count the caller's accounts; None where that would read more than pages.COUNT_BOUND rows."""
        if not caller.scopes.intersection({Scope.WALLET, Scope.AUDIT}):
            return 0
        own = replace(wanted, owner=caller.subject)
        async with self._database.read_only() as connection:
            return await reading.count_accounts(connection, own)

    async def accounts_page(
        self, caller: Caller, wanted: AccountFilter, page: PageRequest[UUID]
    ) -> Page[Account]:
        """Read a page of everybody's accounts, oldest first; needs AUDIT.

        Raises MissingScopeError.
        """
        caller.require(Scope.AUDIT)
        async with self._database.read_only() as connection:
            return await reading.accounts_page(connection, wanted, page)

    async def count_accounts(self, caller: Caller, wanted: AccountFilter) -> int | None:
        """Count everybody's accounts; None where that would read more than pages.COUNT_BOUND rows; needs AUDIT.

        Raises MissingScopeError.
        """
        caller.require(Scope.AUDIT)
        async with self._database.read_only() as connection:
            return await reading.count_accounts(connection, wanted)

    async def balances(self, ids: Sequence[UUID]) -> Mapping[UUID, Balance]:
        """Read what accounts that the caller may read have now, all at one instant."""
        async with self._database.read_only() as connection:
            return await reading.balances(connection, ids)

    async def balances_at(self, ids: Sequence[UUID], at: datetime) -> Mapping[UUID, int]:
        """Read what accounts that the caller may read had posted at an instant; signed, credit positive."""
        async with self._database.read_only() as connection:
            return await reading.balances_at(connection, ids, at)

    async def entry_page(
        self, account: Account, wanted: EntryFilter, page: PageRequest[int], *, newest_first: bool
    ) -> Page[Entry]:
        """Read a page of the account's history; the keys are sequences, stamps where the account is hot."""
        return await histories.entry_page(
            self._database, account, wanted, page, newest_first=newest_first
        )

    async def count_entries(self, account: Account, wanted: EntryFilter) -> int | None:
        """Count the account's entries; None where that would read more than pages.COUNT_BOUND rows."""
        return await histories.count_entries(self._database, account, wanted)

    async def highest_sequence(self, account: Account) -> int:
        """Return the sequence after which a feed begins that wants nothing of the past."""
        return await histories.highest_sequence(self._database, account)

    async def entries_after(self, account: Account, sequence: int, limit: int) -> Sequence[Entry]:
        """Read the entries that follow the sequence, in order, at most `limit`, for who comes back for more.

        So of a hot account it waits but a moment for postings that are under way, and leaves the rest to the next time.
        """
        page = await histories.entry_page(
            self._database,
            account,
            EntryFilter(),
            PageRequest(limit, after=sequence),
            newest_first=False,
            patience_seconds=_FOLLOWERS_PATIENCE_SECONDS,
        )
        return page.items

    async def entry(self, caller: Caller, account_id: UUID, sequence: int) -> Entry | None:
        """Read one entry, if the caller may read its account."""
        account = (await self.accounts(caller, [account_id])).get(account_id)
        if account is None:
            return None
        page = await self.entry_page(
            account, EntryFilter(), PageRequest(1, after=sequence - 1), newest_first=False
        )
        entry = page.items[0] if page.items else None
        return entry if entry is not None and entry.sequence == sequence else None

    async def transactions(self, caller: Caller, ids: Sequence[UUID]) -> Mapping[UUID, Transaction]:
        """Read those of the transactions that the caller may see."""
        async with self._database.read_only() as connection:
            found = await reading.transactions_by_id(connection, ids)
        return {
            transaction_id: transaction
            for transaction_id, transaction in found.items()
            if caller.may_see(transaction)
        }

    async def transaction_by_key(self, caller: Caller, key: str) -> Transaction | None:
        """Read what became of the caller's own key; None where it stands for no transaction; needs any scope.

        Raises MissingScopeError.
        """
        caller.require(*Scope)
        async with self._database.read_only() as connection:
            known = await reading.known_key(connection, caller.subject, key)
            if known is None or known.transaction_id is None:
                return None
            found = await reading.transactions_by_id(connection, [known.transaction_id])
        return found[known.transaction_id]

    async def transactions_page(
        self, caller: Caller, wanted: TransactionFilter, page: PageRequest[UUID]
    ) -> Page[Transaction]:
        """Read a page of all transactions, newest first by their ids; needs AUDIT.

        Raises MissingScopeError.
        """
        caller.require(Scope.AUDIT)
        async with self._database.read_only() as connection:
            return await reading.transactions_page(connection, wanted, page)

    async def last_transactions(self, ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        """Read which transaction has moved each account last, what it holds included; missing where none has."""
        async with self._database.read_only() as connection:
            return await reading.last_transactions(connection, ids)

    async def reversals(self, ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """Read which transactions reverse or refund each of these, oldest first."""
        async with self._database.read_only() as connection:
            return await reading.reversals(connection, ids)

    async def holds(self, caller: Caller, ids: Sequence[UUID]) -> Mapping[UUID, Hold]:
        """Read those of the holds, of either purpose, whose accounts the caller may read."""
        async with self._database.read_only() as connection:
            found = await reading.holds_by_id(connection, ids)
            accounts = await reading.accounts_of_holds(connection, ids)
        return {
            hold_id: hold for hold_id, hold in found.items() if caller.may_read(accounts[hold_id])
        }

    async def holds_of_account(
        self, account: Account, wanted: HoldFilter, page: PageRequest[UUID]
    ) -> Page[Hold]:
        """Read a page of the account's holds, newest first."""
        async with self._database.read_only() as connection:
            return await reading.holds_page(connection, account.id, wanted, page)

    async def holds_page(
        self, caller: Caller, wanted: HoldFilter, page: PageRequest[UUID]
    ) -> Page[Hold]:
        """Read a page of everybody's holds, newest first; needs AUDIT.

        Raises MissingScopeError.
        """
        caller.require(Scope.AUDIT)
        async with self._database.read_only() as connection:
            return await reading.holds_page(connection, None, wanted, page)

    async def accounts_of_holds(self, ids: Sequence[UUID]) -> Mapping[UUID, Account]:
        """Read the account of each hold, for who was handed the hold; ids that name no hold are missing."""
        async with self._database.read_only() as connection:
            return await reading.accounts_of_holds(connection, ids)

    async def transactions_of_holds(
        self, caller: Caller, ids: Sequence[UUID]
    ) -> Mapping[UUID, tuple[Transaction, ...]]:
        """Read those transactions of each hold that the caller may see, oldest first."""
        async with self._database.read_only() as connection:
            ids_of_holds = await reading.transactions_of_holds(connection, ids)
            wanted = [each for found in ids_of_holds.values() for each in found]
            transactions = await reading.transactions_by_id(connection, wanted)
        return {
            hold_id: tuple(
                transactions[each] for each in found if caller.may_see(transactions[each])
            )
            for hold_id, found in ids_of_holds.items()
        }

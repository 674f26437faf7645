"""What callers may read of the ledger; nobody is shown what isn't theirs.

Methods that take a caller judge rights themselves, so that no way of calling them can forget to. Methods that take an
`Account`, or ids of accounts alone, were handed ones that the caller may read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from app.database import Database
from app.ledger import reading
from app.ledger.model import Account, Balance, Caller, Entry, Scope, Transaction
from app.ledger.pages import AccountFilter, EntryFilter, Page, PageRequest


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
        async with self._database.read_only() as connection:
            return await reading.accounts_of_owner(connection, caller.subject, wanted, page)

    async def count_own_accounts(self, caller: Caller, wanted: AccountFilter) -> int | None:
        """Count the caller's accounts; None where that would read more than reading.COUNT_BOUND rows."""
        if not caller.scopes.intersection({Scope.WALLET, Scope.AUDIT}):
            return 0
        async with self._database.read_only() as connection:
            return await reading.count_accounts_of_owner(connection, caller.subject, wanted)

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
        """Read a page of the account's history; the keys are sequences."""
        async with self._database.read_only() as connection:
            return await reading.entry_page(
                connection, account, wanted, page, newest_first=newest_first
            )

    async def count_entries(self, account: Account, wanted: EntryFilter) -> int | None:
        """Count the account's entries; None where that would read more than reading.COUNT_BOUND rows."""
        async with self._database.read_only() as connection:
            return await reading.count_entries(connection, account, wanted)

    async def entries_after(self, account: Account, sequence: int, limit: int) -> Sequence[Entry]:
        """Read the entries that follow the sequence, in order, at most `limit`."""
        page = await self.entry_page(
            account, EntryFilter(), PageRequest(limit, after=sequence), newest_first=False
        )
        return page.items

    async def entry(self, caller: Caller, account_id: UUID, sequence: int) -> Entry | None:
        """Read one entry, if the caller may read its account."""
        account = (await self.accounts(caller, [account_id])).get(account_id)
        if account is None:
            return None
        entries = await self.entries_after(account, sequence - 1, 1)
        return entries[0] if entries and entries[0].sequence == sequence else None

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

    async def transaction_ids_of_entries(
        self, sequences: Mapping[UUID, int]
    ) -> Mapping[UUID, UUID]:
        """Read which transaction wrote the entry with this sequence, for each account."""
        async with self._database.read_only() as connection:
            return await reading.transaction_ids_of_entries(connection, sequences)

    async def reversals(self, ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """Read which transactions reverse or refund each of these, oldest first."""
        async with self._database.read_only() as connection:
            return await reading.reversals(connection, ids)

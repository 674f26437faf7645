"""The accounts that Saldo itself opens, one for each currency, when they are first needed.

Each stands on the other side of money that comes from outside of the books, so it may fall below zero. Several processes
may need one at the same moment: its code is unique, so whichever of them is first opens it, and all find the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

from app.database import Database, DatabaseUnavailableError, load_statements
from app.ledger.accounts import CLEARING_PREFIX, OPENING_PREFIX
from app.ledger.errors import LedgerUnavailableError
from app.ledger.model import AccountKind

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "system_accounts.sql")

_ATTEMPTS: Final = 2
"""Who loses the race to open an account finds it in the second attempt, for no account is ever removed."""


class SystemAccounts:
    """Finds the accounts of the platform, opening each on first use and remembering it from then on."""

    def __init__(self, database: Database, new_id: Callable[[], UUID]) -> None:
        """Take a pool and the maker of UUIDv7 ids."""
        self._database = database
        self._new_id = new_id
        self._known: dict[str, UUID] = {}

    async def clearing(self, currency: str) -> UUID:
        """Return the account that stands for the bank: what comes in is debited to it. Raises LedgerUnavailableError."""
        return await self._find(f"{CLEARING_PREFIX}{currency}", AccountKind.ASSET, currency)

    async def opening(self, currency: str) -> UUID:
        """Return the account on the other side of all opening balances. Raises LedgerUnavailableError."""
        return await self._find(f"{OPENING_PREFIX}{currency}", AccountKind.EQUITY, currency)

    async def _find(self, code: str, kind: AccountKind, currency: str) -> UUID:
        account_id = self._known.get(code)
        if account_id is None:
            account_id = self._known[code] = await self._open_or_find(code, kind, currency)
        return account_id

    async def _open_or_find(self, code: str, kind: AccountKind, currency: str) -> UUID:
        values = {"id": self._new_id(), "code": code, "kind": kind, "currency": currency}
        try:
            for _ in range(_ATTEMPTS):
                async with self._database.transaction() as connection:
                    found = (
                        await connection.execute(_SQL["open_or_find"], values)
                    ).scalar_one_or_none()
                if found is not None:
                    return found
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        raise LedgerUnavailableError

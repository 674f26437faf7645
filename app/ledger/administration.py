"""Accounts as their administration changes them: they are opened, frozen, thawed and closed.

None of this moves money, so it goes past the engine. A change of status locks all of the account's rows as postings do, and
what those of a derived account share instead: it waits for the postings that are under way, and later ones see what it did.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import Database, is_contention, load_statements
from app.ledger import reading
from app.ledger.accounts import (
    CLEARING_PREFIX,
    OPENING_PREFIX,
    OpenAccountCommand,
    insert_account_in_tx,
    insert_account_key_in_tx,
    opening_fingerprint,
)
from app.ledger.errors import (
    AccountClosed,
    AccountNotEmpty,
    AccountNotFound,
    CodeTaken,
    InvalidInput,
    LedgerUnavailableError,
    Refusal,
)
from app.ledger.idempotency import conflict_with
from app.ledger.model import Account, AccountPurpose, AccountStatus
from app.ledger.posting.decision import Refused
from app.ledger.rows import account_of
from app.ledger.rules import refuse_text

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "accounts.sql")

REASON_LIMIT: Final = 500

_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class SetAccountStatusCommand:
    """Freeze, thaw or close an account; an id that names nothing is None."""

    account_id: UUID | None
    status: AccountStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The account was opened, now or by an earlier request with the same key."""

    account: Account
    replayed: bool


class Administration:
    """Opens accounts and sets their status, for callers whose rights were judged already."""

    def __init__(self, database: Database, new_id: Callable[[], UUID]) -> None:
        """Take a pool and the maker of UUIDv7 ids."""
        self._database = database
        self._new_id = new_id

    async def open_account(self, subject: str, command: OpenAccountCommand) -> Opened | Refused:
        """Open an account whose command was judged; raises LedgerUnavailableError and DatabaseUnavailableError."""
        for _ in range(_ATTEMPTS):
            answer = await self._try_to_open(subject, command)
            if answer is not None:
                return answer
        raise LedgerUnavailableError

    async def set_status(self, subject: str, command: SetAccountStatusCommand) -> Account | Refused:
        """Set the status and put on record who did, and why; an account that has it already stays as it is.

        Raises DatabaseUnavailableError, and LedgerUnavailableError where postings get in the way again and again.
        """
        refusal = refuse_text(command.reason, REASON_LIMIT, ("reason",))
        if refusal is not None:
            return Refused(refusal)
        if command.account_id is None:
            return Refused(AccountNotFound(("accountId",)))
        for _ in range(_ATTEMPTS):
            try:
                return await self._try_to_set_status(subject, command, command.account_id)
            except DBAPIError as error:
                # A posting that opens the account's held child locks that after the account, in whatever order the ids are.
                if not is_contention(error):
                    raise
        raise LedgerUnavailableError

    async def _try_to_set_status(
        self, subject: str, command: SetAccountStatusCommand, account_id: UUID
    ) -> Account | Refused:
        async with self._database.transaction() as connection:
            await connection.execute(_SQL["wait_for_postings"], {"id": account_id})
            rows = await connection.execute(_SQL["lock_with_children"], {"id": account_id})
            family = {row.id: account_of(row) for row in rows.all()}
            account = family.get(account_id)
            if account is None or account.purpose is not AccountPurpose.MAIN:
                return Refused(AccountNotFound(("accountId",)))
            if account.status is command.status:
                return account
            refusal = await _refuse_status_in_tx(connection, account, command.status)
            if refusal is not None:
                return Refused(refusal)
            values = {"id": account.id, "status": command.status}
            await connection.execute(_SQL["set_status"], values)
            await connection.execute(
                _SQL["insert_status_change"],
                {**values, "reason": command.reason, "caller": subject},
            )
        return replace(account, status=command.status)

    async def _try_to_open(
        self, subject: str, command: OpenAccountCommand
    ) -> Opened | Refused | None:
        """Open once; None means that another request booked the key or the code at the same moment."""
        asked = opening_fingerprint(command)
        async with self._database.transaction() as connection:
            known = await reading.known_key(connection, subject, command.key)
            if known is not None:
                conflict = conflict_with(known, asked)
                if conflict is not None or known.account_id is None:
                    return Refused(conflict) if conflict is not None else None
                found = await reading.accounts_by_id(connection, [known.account_id])
                return Opened(found[known.account_id], replayed=True)
            account = await insert_account_in_tx(connection, self._new_id(), command)
            if account is None:
                # The code may have been taken by this very request, sent twice at the same moment.
                mine = await reading.known_key(connection, subject, command.key)
                return Refused(CodeTaken(("code",))) if mine is None else None
            booked = await insert_account_key_in_tx(
                connection, subject, command.key, asked, account.id
            )
            if not booked:
                await connection.rollback()
                return None
        return Opened(account, replayed=False)


async def _refuse_status_in_tx(
    connection: AsyncConnection, account: Account, status: AccountStatus
) -> Refusal | None:
    if account.status is AccountStatus.CLOSED:
        return AccountClosed(("accountId",))
    if status is not AccountStatus.CLOSED:
        return None
    if (account.code or "").startswith((CLEARING_PREFIX, OPENING_PREFIX)):
        return InvalidInput(
            ("accountId",), "must not be an account that the ledger opens by itself"
        )
    balance = (await reading.balances(connection, [account.id]))[account.id]
    if balance.available != 0 or balance.held != 0:
        return AccountNotEmpty(("accountId",))
    return None

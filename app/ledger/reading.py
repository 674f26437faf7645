"""The reading statements, one function each; all take a connection first and see the newest committed state."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger.idempotency import KnownKey
from app.ledger.model import Account, AccountPurpose, Balance, Direction, Entry, Leg, Transaction
from app.ledger.money import INT64_MAX
from app.ledger.pages import AccountFilter, EntryFilter, Page, PageRequest, page_of
from app.ledger.rows import ACCOUNT_COLUMNS, AnyRow, account_of, known_key_of

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "reading.sql")

COUNT_BOUND: Final = 10_000
"""A list is counted exactly only where that reads no more rows than this."""

_LOWEST_ID: Final = UUID(int=0)
_HIGHEST_ID: Final = UUID(int=2**128 - 1)


async def accounts_by_id(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Account]:
    """Read main accounts; ids that name nothing, or a child, are missing."""
    rows = (await connection.execute(_SQL["accounts_by_id"], {"ids": list(ids)})).all()
    return {row.id: account_of(row) for row in rows}


async def account_by_code(connection: AsyncConnection, code: str) -> Account | None:
    """Read the account that bears the code."""
    row = (await connection.execute(_SQL["account_by_code"], {"code": code})).one_or_none()
    return None if row is None else account_of(row)


async def accounts_of_owner(
    connection: AsyncConnection, owner: str, wanted: AccountFilter, page: PageRequest[UUID]
) -> Page[Account]:
    """Read a page of the owner's accounts, oldest first."""
    rows = await connection.execute(
        _SQL["accounts_of_owner"],
        {
            "owner": owner,
            "above": page.after or _LOWEST_ID,
            "below": page.before or _HIGHEST_ID,
            "backward": page.backward,
            "limit": page.limit + 1,
            **_account_conditions(wanted),
        },
    )
    return page_of(page, [account_of(row) for row in rows.all()])


async def count_accounts_of_owner(
    connection: AsyncConnection, owner: str, wanted: AccountFilter
) -> int | None:
    """Count the owner's accounts; None where that would read more than COUNT_BOUND rows."""
    row = (
        await connection.execute(
            _SQL["count_accounts_of_owner"],
            {"owner": owner, "bound": COUNT_BOUND + 1, **_account_conditions(wanted)},
        )
    ).one()
    return row.matching if row.rows_read <= COUNT_BOUND else None


async def balances(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Balance]:
    """Read what each account has now, all at one instant."""
    rows = (await connection.execute(_SQL["balances"], {"ids": list(ids)})).all()
    return {
        row.id: Balance(row.id, available=row.balance, held=row.held, sequence=row.sequence)
        for row in rows
    }


async def balances_at(
    connection: AsyncConnection, ids: Sequence[UUID], at: datetime
) -> dict[UUID, int]:
    """Read the posted balance (signed, credit positive, minor units) that each account had at the instant."""
    rows = (await connection.execute(_SQL["balances_at"], {"ids": list(ids), "at": at})).all()
    return {row.id: row.posted for row in rows}


async def entry_page(
    connection: AsyncConnection,
    account: Account,
    wanted: EntryFilter,
    page: PageRequest[int],
    *,
    newest_first: bool,
) -> Page[Entry]:
    """Read a page of the account's history; the keys are sequences, in the order of the list."""
    above, below = (page.before, page.after) if newest_first else (page.after, page.before)
    descending = newest_first is not page.backward
    rows = await connection.execute(
        _SQL["entries_descending" if descending else "entries_ascending"],
        {
            "account_id": account.id,
            "above": 0 if above is None else above,
            "below": INT64_MAX if below is None else below,
            "limit": page.limit + 1,
            **_entry_conditions(wanted),
        },
    )
    return page_of(page, [_entry_of(account, row) for row in rows.all()])


async def count_entries(
    connection: AsyncConnection, account: Account, wanted: EntryFilter
) -> int | None:
    """Count the account's entries; None where that would read more than COUNT_BOUND rows.

    Without a filter nothing has to be read: the sequence has no gaps, so its last number is the count.
    """
    total = (await balances(connection, [account.id]))[account.id].sequence
    if wanted == EntryFilter():
        return total
    if total > COUNT_BOUND:
        return None
    result = await connection.execute(
        _SQL["count_entries"], {"account_id": account.id, **_entry_conditions(wanted)}
    )
    return int(result.scalar_one())


async def entries_of_transactions(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, tuple[Entry, ...]]:
    """Read all lines of these transactions, in the order of their legs."""
    rows = (await connection.execute(_SQL["entries_of_transactions"], {"ids": list(ids)})).all()
    return {
        transaction_id: tuple(
            Entry(account_of(row), row[12], row[13], row[14], row[15], row[16]) for row in group
        )
        for transaction_id, group in groupby(rows, key=lambda row: row[ACCOUNT_COLUMNS])
    }


async def transactions_by_id(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, Transaction]:
    """Read transactions with their legs; ids that name nothing are missing."""
    rows = (await connection.execute(_SQL["transactions_by_id"], {"ids": list(ids)})).all()
    return {
        transaction_id: _transaction_of(list(group))
        for transaction_id, group in groupby(rows, key=lambda row: row.id)
    }


async def transaction_ids_of_entries(
    connection: AsyncConnection, sequences: Mapping[UUID, int]
) -> dict[UUID, UUID]:
    """Read which transaction wrote the entry with this sequence, for each account."""
    rows = (
        await connection.execute(
            _SQL["transaction_ids_of_entries"],
            {"account_ids": list(sequences), "sequences": list(sequences.values())},
        )
    ).all()
    return {row.account_id: row.transaction_id for row in rows}


async def reversals(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, tuple[UUID, ...]]:
    """Read which transactions reverse or refund each of these, oldest first."""
    rows = (await connection.execute(_SQL["reversals"], {"ids": list(ids)})).all()
    found: dict[UUID, tuple[UUID, ...]] = {}
    for row in rows:
        found[row.reverses_id] = (*found.get(row.reverses_id, ()), row.id)
    return found


async def known_key(connection: AsyncConnection, caller: str, key: str) -> KnownKey | None:
    """Read what the caller's key stands for."""
    result = await connection.execute(_SQL["known_key"], {"caller": caller, "key": key})
    row = result.mappings().one_or_none()
    return None if row is None else known_key_of(row)


def _account_conditions(wanted: AccountFilter) -> Mapping[str, Any]:
    return {
        "code_prefix": wanted.code_prefix,
        "currency": wanted.currency,
        "kind": wanted.kind,
        "status": wanted.status,
    }


def _entry_conditions(wanted: EntryFilter) -> Mapping[str, Any]:
    signs = {None: None, Direction.DEBIT: -1, Direction.CREDIT: 1}
    return {
        "types": None if wanted.types is None else list(wanted.types),
        "sign": signs[wanted.direction],
        "posted_from": wanted.posted_from,
        "posted_before": wanted.posted_before,
        "smallest": wanted.smallest,
        "largest": wanted.largest,
    }


def _entry_of(account: Account, row: AnyRow) -> Entry:
    return Entry(
        account, row.transaction_id, row.sequence, row.amount, row.balance_after, row.posted_at
    )


def _transaction_of(rows: Sequence[AnyRow]) -> Transaction:
    first = rows[0]
    return Transaction(
        id=first.id,
        type=first.type,
        caller=first.caller,
        description=first.description,
        external_reference=first.external_reference,
        metadata=first.metadata,
        effective_at=first.effective_at,
        posted_at=first.posted_at,
        reverses_id=first.reverses_id,
        legs=tuple(
            Leg(
                account_id=row.account_id,
                account_code=row.account_code,
                account_owner=row.account_owner,
                purpose=AccountPurpose(row.purpose),
                currency=row.currency,
                amount=row.amount,
            )
            for row in rows
        ),
    )

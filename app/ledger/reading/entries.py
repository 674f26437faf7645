"""The lines of histories, those of a hot account as far as the caller says that they are settled."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger import pages
from app.ledger.children import stripe_ids
from app.ledger.model import Account, Direction, Entry
from app.ledger.money import INT64_MAX
from app.ledger.pages import EntryFilter, Page, PageRequest, page_of
from app.ledger.rows import ACCOUNT_COLUMNS, AnyRow, account_of

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "entries.sql")

_SIGNS: Final = {None: None, Direction.DEBIT: -1, Direction.CREDIT: 1}


async def settled_stamp(connection: AsyncConnection) -> tuple[int, int]:
    """Read the highest base of stamps that was given out, and the one up to which all are settled.

    What is settled is seen by the statements that follow, and not by one that has already begun.
    """
    row = (await connection.execute(_SQL["settled_stamp"])).one()
    return row.highest, row.settled


async def entry_page(
    connection: AsyncConnection,
    account: Account,
    wanted: EntryFilter,
    page: PageRequest[int],
    *,
    newest_first: bool,
    end: int = INT64_MAX,
) -> Page[Entry]:
    """Read a page of the account's history before `end`; the keys are sequences, in the order of the list.

    The lines of a striped account come without what it has after them.
    """
    above, below = (page.before, page.after) if newest_first else (page.after, page.before)
    descending = newest_first is not page.backward
    rows = await connection.execute(
        _SQL["entries_descending" if descending else "entries_ascending"],
        {
            "row_ids": _rows_of(account),
            "above": 0 if above is None else above,
            "below": end if below is None else min(below, end),
            "limit": page.limit + 1,
            **_conditions(wanted),
        },
    )
    return page_of(page, [_entry_of(account, row) for row in rows.all()])


async def count_entries(
    connection: AsyncConnection, account: Account, wanted: EntryFilter, *, end: int = INT64_MAX
) -> int | None:
    """Count the account's entries before `end`; None where that would read more than pages.COUNT_BOUND rows."""
    row = (
        await connection.execute(
            _SQL["count_entries"],
            {
                "row_ids": _rows_of(account),
                "below": end,
                "bound": pages.COUNT_BOUND + 1,
                **_conditions(wanted),
            },
        )
    ).one()
    return row.matching if row.rows_read <= pages.COUNT_BOUND else None


async def striped_balances(
    connection: AsyncConnection, account: Account, stamps: Iterable[int]
) -> dict[int, int]:
    """Read what a striped account has available after the line with each of these stamps, which are settled."""
    rows = await connection.execute(
        _SQL["striped_balances"], {"stamps": list(stamps), "row_ids": _rows_of(account)}
    )
    return {row.stamp: int(row.available) for row in rows.all()}


async def entries_of_transactions(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, tuple[Entry, ...]]:
    """Read all lines of these transactions, in the order of their legs.

    Those of a striped account come without what it has after them, see `histories.with_balances`.
    """
    rows = (await connection.execute(_SQL["entries_of_transactions"], {"ids": list(ids)})).all()
    return {
        transaction_id: tuple(_entry_of(account_of(row), row) for row in lines)
        for transaction_id, lines in groupby(rows, key=lambda row: row[ACCOUNT_COLUMNS])
    }


async def last_transactions(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Read which transaction has moved each account last, what it holds included; missing where none has."""
    rows = (await connection.execute(_SQL["last_transactions"], {"ids": list(ids)})).all()
    return {row.id: row.transaction_id for row in rows}


def _rows_of(account: Account) -> list[UUID]:
    """Tell which rows bear the account's entries."""
    return [account.id] if account.stripes is None else [*stripe_ids(account.id, account.stripes)]


def _conditions(wanted: EntryFilter) -> Mapping[str, Any]:
    return {
        "types": None if wanted.types is None else list(wanted.types),
        "sign": _SIGNS[wanted.direction],
        "posted_from": wanted.posted_from,
        "posted_before": wanted.posted_before,
        "smallest": wanted.smallest,
        "largest": wanted.largest,
    }


def _entry_of(account: Account, row: AnyRow) -> Entry:
    return Entry(
        account=account,
        transaction_id=row.transaction_id,
        sequence=row.sequence,
        amount=row.amount,
        balance_after=None if account.hot else row.balance_after,
        posted_at=row.posted_at,
    )

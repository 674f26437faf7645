"""Transactions: by id, by the key they were booked under, and in pages."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.driver import load_driver_statements
from app.ledger.idempotency import KnownKey
from app.ledger.model import Transaction
from app.ledger.pages import Page, PageRequest, TransactionFilter, page_of, span_of_ids
from app.ledger.rows import known_key_of, transactions_of

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "transactions.sql")

TRANSACTIONS_BY_ID: Final = load_driver_statements(
    Path(__file__).parent / "sql" / "transactions.sql"
)["transactions_by_id"]
"""The statement of `transactions_by_id`, for who reads through the driver."""

_MARGIN_MS: Final = 3_600_000
"""How far the clock of the server that named a transaction may be from the database's, by which it was posted."""

_TIME_BITS: Final = 48
_BITS_BELOW_TIME: Final = 80


async def transactions_by_id(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, Transaction]:
    """Read transactions with their legs; ids that name nothing are missing."""
    result = await connection.execute(_SQL["transactions_by_id"], {"ids": list(ids)})
    return transactions_of(result.mappings())


async def transactions_page(
    connection: AsyncConnection, wanted: TransactionFilter, page: PageRequest[UUID]
) -> Page[Transaction]:
    """Read a page of all transactions, newest first by their ids; these are made when a request comes in.

    So one that is posted late may turn up behind newer ones.
    """
    above, below = span_of_ids(page, newest_first=True)
    if wanted.posted_from is not None:
        above = max(above, _first_id(wanted.posted_from, -_MARGIN_MS))
    if wanted.posted_before is not None:
        below = min(below, _first_id(wanted.posted_before, _MARGIN_MS))
    rows = await connection.execute(
        _SQL["transaction_ids_ascending" if page.backward else "transaction_ids_descending"],
        {
            "above": above,
            "below": below,
            "limit": page.limit + 1,
            "types": None if wanted.types is None else list(wanted.types),
            "posted_from": wanted.posted_from,
            "posted_before": wanted.posted_before,
        },
    )
    ids = page_of(page, [row.id for row in rows.all()])
    # What was seen a moment ago is still there: nothing can delete a transaction.
    found = await transactions_by_id(connection, ids.items) if ids.items else {}
    return Page(tuple(found[each] for each in ids.items), ids.has_next, ids.has_previous)


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


def _first_id(instant: datetime, shift_ms: int) -> UUID:
    """Return a bound between the UUIDv7 made before a moment and those made from then on."""
    made_ms = int(instant.timestamp() * 1_000) + shift_ms
    return UUID(int=min(max(made_ms, 0), (1 << _TIME_BITS) - 1) << _BITS_BELOW_TIME)

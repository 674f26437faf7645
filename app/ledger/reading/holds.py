"""Holds and withdrawals, and what was booked for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger.model import Account, Hold, HoldStatus
from app.ledger.pages import HoldFilter, Page, PageRequest, page_of, span_of_ids
from app.ledger.rows import account_of, hold_of

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "holds.sql")


async def holds_by_id(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Hold]:
    """Read holds of either purpose; ids that name nothing are missing."""
    result = await connection.execute(_SQL["holds_by_id"], {"ids": list(ids)})
    return {row["id"]: hold_of(row) for row in result.mappings()}


async def holds_page(
    connection: AsyncConnection,
    account_id: UUID | None,
    wanted: HoldFilter,
    page: PageRequest[UUID],
) -> Page[Hold]:
    """Read a page of the account's holds, or of everybody's where it is None, newest first."""
    above, below = span_of_ids(page, newest_first=True)
    result = await connection.execute(
        _SQL["holds_ascending" if page.backward else "holds_descending"],
        {
            "account_id": account_id,
            "purpose": wanted.purpose,
            "statuses": list(HoldStatus) if wanted.status is None else [wanted.status],
            "above": above,
            "below": below,
            "limit": page.limit + 1,
        },
    )
    return page_of(page, [hold_of(row) for row in result.mappings()])


async def accounts_of_holds(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, Account]:
    """Read the account of each hold; ids that name no hold are missing."""
    rows = (await connection.execute(_SQL["accounts_of_holds"], {"ids": list(ids)})).all()
    return {row.hold_id: account_of(row) for row in rows}


async def transactions_of_holds(
    connection: AsyncConnection, ids: Sequence[UUID]
) -> dict[UUID, tuple[UUID, ...]]:
    """Read which transactions place and end each hold, oldest first."""
    rows = (await connection.execute(_SQL["transactions_of_holds"], {"ids": list(ids)})).all()
    found: dict[UUID, tuple[UUID, ...]] = {}
    for row in rows:
        found[row.hold_id] = (*found.get(row.hold_id, ()), row.id)
    return found

"""What accounts have, now and at any instant."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger.model import Balance

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "balances.sql")


async def balances(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Balance]:
    """Read what each account has now, all at one instant."""
    rows = (await connection.execute(_SQL["balances"], {"ids": list(ids)})).all()
    return {
        row.id: Balance(
            row.id,
            available=row.balance if row.hot_balance is None else int(row.hot_balance),
            held=row.held,
            sequence=row.sequence,
        )
        for row in rows
    }


async def balances_at(
    connection: AsyncConnection, ids: Sequence[UUID], at: datetime
) -> dict[UUID, int]:
    """Read the posted balance (signed, credit positive, minor units) that each account had at the instant."""
    rows = (await connection.execute(_SQL["balances_at"], {"ids": list(ids), "at": at})).all()
    return {row.id: int(row.posted) for row in rows}

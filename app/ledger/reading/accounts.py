"""Accounts: by id, by code, and in pages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger import pages
from app.ledger.model import Account
from app.ledger.pages import AccountFilter, Page, PageRequest, page_of, span_of_ids
from app.ledger.rows import account_of

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "accounts.sql")


async def accounts_by_id(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Account]:
    """Read main accounts; ids that name nothing, or a child, are missing."""
    rows = (await connection.execute(_SQL["accounts_by_id"], {"ids": list(ids)})).all()
    return {row.id: account_of(row) for row in rows}


async def account_by_code(connection: AsyncConnection, code: str) -> Account | None:
    """Read the account that bears the code."""
    row = (await connection.execute(_SQL["account_by_code"], {"code": code})).one_or_none()
    return None if row is None else account_of(row)


async def accounts_page(
    connection: AsyncConnection, wanted: AccountFilter, page: PageRequest[UUID]
) -> Page[Account]:
    """Read a page of main accounts, oldest first."""
    above, below = span_of_ids(page, newest_first=False)
    rows = await connection.execute(
        _SQL["accounts_descending" if page.backward else "accounts_ascending"],
        {"above": above, "below": below, "limit": page.limit + 1, **_conditions(wanted)},
    )
    return page_of(page, [account_of(row) for row in rows.all()])


async def count_accounts(connection: AsyncConnection, wanted: AccountFilter) -> int | None:
    """Count main accounts; None where that would read more than pages.COUNT_BOUND rows."""
    row = (
        await connection.execute(
            _SQL["count_accounts"], {"bound": pages.COUNT_BOUND + 1, **_conditions(wanted)}
        )
    ).one()
    return row.matching if row.rows_read <= pages.COUNT_BOUND else None


def _conditions(wanted: AccountFilter) -> Mapping[str, Any]:
    return {
        "owner": wanted.owner,
        "code_prefix": wanted.code_prefix,
        "currency": wanted.currency,
        "kind": wanted.kind,
        "status": wanted.status,
    }

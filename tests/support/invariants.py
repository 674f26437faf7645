"""What must be true of the books after every case, whatever happened before."""

import asyncpg

from tests.support.findings import ALL
from tests.support.postgres import connect


async def assert_books_are_right(url: str) -> None:
    """Compare all that must agree, at one instant, on a connection of a superuser's."""
    async with connect(url) as connection:
        await assert_right_in(connection)


async def assert_right_in(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Do the same on a connection that is open already."""
    async with connection.transaction(isolation="repeatable_read"):
        findings = {
            name: [tuple(row) for row in rows[:5]]
            for name, query in ALL.items()
            if (rows := await connection.fetch(query))
        }
    assert findings == {}, findings

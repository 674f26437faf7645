"""A running ledger and what books opening balances into it; the books are audited when the test is over."""

from collections.abc import AsyncGenerator

import pytest

from app.database import Database
from app.ledger.openings import Openings
from app.ledger.system_accounts import SystemAccounts
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import RunningLedger, new_id, running_ledger
from tests.support.postgres import TestDatabase


@pytest.fixture
async def books(database_url: TestDatabase) -> AsyncGenerator[RunningLedger]:
    async with running_ledger(database_url.runtime_url) as running:
        yield running
    await assert_books_are_right(database_url.superuser_url)


@pytest.fixture
async def openings(books: RunningLedger) -> AsyncGenerator[Openings]:
    database = Database(books.url, pool_size=5, pool_timeout_ms=30_000, probes_only=True)
    yield Openings(database, books.engine, SystemAccounts(database, new_id), new_id)
    await database.close()

"""A running ledger on a database of its own, whose books are audited when the test is over."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.invariants import assert_books_are_right
from tests.support.ledger import RunningLedger, running_ledger
from tests.support.postgres import TestDatabase
from tests.support.servers import Servers, servers


@pytest.fixture
async def audited(database_url: TestDatabase) -> AsyncGenerator[TestDatabase]:
    """Lend a database for ledgers that the test runs itself."""
    yield database_url
    await assert_books_are_right(database_url.superuser_url)


@pytest.fixture
async def books(audited: TestDatabase) -> AsyncGenerator[RunningLedger]:
    """Run a ledger for one test."""
    async with running_ledger(audited.runtime_url) as running:
        yield running


@pytest.fixture(scope="session")
async def two_servers() -> AsyncGenerator[Servers]:
    """Run two further processes, each with an engine of its own."""
    async with servers(2) as processes:
        yield processes

"""A server for each test of the API."""

from collections.abc import AsyncGenerator

import pytest

from tests.schema.server import ApiServer, running_server
from tests.support.postgres import TestDatabase


@pytest.fixture
async def server(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    async with running_server(database_url.runtime_url) as running:
        yield running

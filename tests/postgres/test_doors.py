"""The two doors to the database, where what the driver says of a broken connection must mean that, whatever it is called."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import asyncpg
import pytest
from sqlalchemy import text

from app.database import Database, DatabaseUnavailableError
from app.driver import DriverConnections
from tests.support.postgres import TestDatabase

Lent = TypeVar("Lent")


async def lose(door: AbstractAsyncContextManager[Lent]) -> AsyncGenerator[Lent]:
    """Lose the connection as the driver does where the server is killed between a statement and the commit."""
    async with door as connection:
        yield connection
        raise asyncpg.InternalClientError(
            "cannot switch to state 15; another operation is in progress"
        )


async def test_a_driver_that_lost_its_place_in_the_protocol_means_a_broken_connection(
    database_url: TestDatabase,
) -> None:
    connections = DriverConnections(database_url.runtime_url)
    losing = lose(connections.transaction())
    connection = await anext(losing)
    with pytest.raises(DatabaseUnavailableError):
        await anext(losing)
    assert connection.is_closed()
    await connections.close()


async def test_a_pool_does_not_lend_such_a_connection_again(database_url: TestDatabase) -> None:
    database = Database(database_url.runtime_url, pool_size=1)
    losing = lose(database.read_only())
    who = text("select pg_backend_pid()")
    before = (await (await anext(losing)).execute(who)).scalar_one()
    with pytest.raises(DatabaseUnavailableError):
        await anext(losing)
    async with database.read_only() as connection:
        assert (await connection.execute(who)).scalar_one() != before
    await database.close()

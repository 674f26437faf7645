"""Broadcaster over PostgreSQL, as its stock backend doesn't do it: it comes back, and it can be used by several at once."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import pytest
from broadcaster import Broadcast, Event

from app.relay.broadcast import open_broadcast
from app.relay.messages import RESYNC
from app.relay.postgres_backend import PostgresBackend
from tests.relay.support import (
    PATIENCE_SECONDS,
    freezing_proxy,
    listening_processes,
    moved_to,
    running,
    socket_of,
    terminate,
    until,
)
from tests.support.postgres import TestDatabase, connect

CHANNEL = "a channel with spaces"


@contextlib.asynccontextmanager
async def opened(backend: PostgresBackend) -> AsyncGenerator[PostgresBackend]:
    await backend.connect()
    await backend.subscribe(CHANNEL)
    try:
        yield backend
    finally:
        await backend.disconnect()


async def next_message(backend: PostgresBackend) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        event = await backend.next_published()
    assert event.channel == CHANNEL
    return event.message


async def test_messages_published_at_once_all_arrive(database_url: TestDatabase) -> None:
    async with opened(PostgresBackend(database_url.runtime_url)) as backend:
        assert await next_message(backend) == RESYNC
        await asyncio.gather(*(backend.publish(CHANNEL, str(number)) for number in range(50)))
        arrived = [await next_message(backend) for _ in range(50)]
    assert sorted(arrived, key=int) == [str(number) for number in range(50)]


async def test_a_url_for_sqlalchemy_works_through_broadcaster(database_url: TestDatabase) -> None:
    url = database_url.runtime_url.replace("postgresql://", "postgresql+asyncpg://")
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_broadcast(None, url) as broadcast,
        broadcast.subscribe(CHANNEL) as subscriber,
    ):
        assert (await subscriber.get()).message == RESYNC
        await broadcast.publish(CHANNEL, "hello")
        assert (await subscriber.get()).message == "hello"


async def test_after_its_connections_were_ended_it_says_so_and_hears_again(
    database_url: TestDatabase,
) -> None:
    async with opened(PostgresBackend(database_url.runtime_url)) as backend:
        assert await next_message(backend) == RESYNC
        await backend.publish(CHANNEL, "before")
        assert await next_message(backend) == "before"
        assert await terminate(database_url, "saldo %") == 2
        assert await next_message(backend) == RESYNC
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            await backend.publish(CHANNEL, "may be lost")
        await backend.publish(CHANNEL, "after")
        while (message := await next_message(backend)) != "after":
            assert message == "may be lost"


async def test_p03_a_message_that_is_too_long_is_refused_and_the_next_one_goes_out(
    database_url: TestDatabase,
) -> None:
    async with opened(PostgresBackend(database_url.runtime_url)) as backend:
        assert await next_message(backend) == RESYNC
        with pytest.raises(asyncpg.InvalidParameterValueError):
            await backend.publish(CHANNEL, "x" * 8_000)
        await backend.publish(CHANNEL, "é" * 3_999)
        assert await next_message(backend) == "é" * 3_999


async def test_e07_an_inbox_that_nobody_empties_stays_small_and_says_that_something_was_lost(
    database_url: TestDatabase,
) -> None:
    async with opened(PostgresBackend(database_url.runtime_url, inbox_max=10)) as backend:
        assert await next_message(backend) == RESYNC
        async with connect(database_url.runtime_url) as other:
            await other.execute(
                "select pg_notify($1, n::text) from generate_series(1, 1000) as n", CHANNEL
            )
        heard = [await next_message(backend)]
        assert len(backend._inbox) <= 10
        while heard[-1] != "1000" and backend._inbox:
            heard.append(await next_message(backend))
    assert RESYNC in heard
    assert len(heard) <= 11


async def test_a_server_that_falls_silent_is_noticed(
    database_url: TestDatabase, tmp_path: Path
) -> None:
    """A half-open connection: everything is accepted, nothing is answered, and no one says good-bye."""
    async with (
        freezing_proxy(database_url.runtime_url, tmp_path) as (url, frozen),
        opened(PostgresBackend(url, probe_seconds=0.2)) as backend,
    ):
        assert await next_message(backend) == RESYNC
        frozen.set()
        async with running(_thaw_once_dropped(database_url, frozen)):
            assert await next_message(backend) == RESYNC


async def _thaw_once_dropped(database: TestDatabase, frozen: asyncio.Event) -> None:
    (process_id,) = await listening_processes(database)

    async def dropped() -> bool:
        return process_id not in await listening_processes(database)

    await until(dropped)
    frozen.clear()


async def test_a_server_that_is_away_at_first_is_waited_for(
    database_url: TestDatabase, tmp_path: Path
) -> None:
    url = moved_to(database_url.runtime_url, tmp_path)
    async with opened(PostgresBackend(url)) as backend:
        with pytest.raises(FileNotFoundError):
            await backend.publish(CHANNEL, "nobody is there")
        async with running(backend.next_published()) as (first,):
            await asyncio.sleep(0)
            (tmp_path / socket_of(url).name).symlink_to(socket_of(database_url.runtime_url))
            assert await first == Event(CHANNEL, RESYNC)


async def test_it_works_inside_a_plain_broadcast(database_url: TestDatabase) -> None:
    """It is handed to Broadcaster as any other backend would be."""
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        Broadcast(backend=PostgresBackend(database_url.runtime_url)) as broadcast,
        broadcast.subscribe(CHANNEL) as subscriber,
    ):
        assert await subscriber.get() == Event(CHANNEL, RESYNC)
        async with connect(database_url.runtime_url) as other:
            await other.execute("select pg_notify($1, 'from elsewhere')", CHANNEL)
        assert await subscriber.get() == Event(CHANNEL, "from elsewhere")

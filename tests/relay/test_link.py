"""A broker that is away, frozen or deaf delays wake-ups and nothing else, and never holds up the end of a process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.doorbell import Doorbell
from app.relay.drain import Relay, RelayPace
from app.relay.link import BroadcastLink, BroadcastUnavailableError
from app.relay.messages import DOORBELL_CHANNEL, RESYNC
from tests.relay.support import (
    PATIENCE_SECONDS,
    check_log,
    create_accounts,
    freezing_proxy,
    move,
    pending,
    read_events,
    running,
    server,
    until,
)
from tests.support.postgres import TestDatabase, connect

NEVER_SECONDS = 10.0 * PATIENCE_SECONDS
QUICK = RelayPace(poll_seconds=0.02)


@contextlib.asynccontextmanager
async def frozen_broker() -> AsyncGenerator[str]:
    """Accept connections and never answer, as a stopped redis does."""
    streams: list[asyncio.StreamWriter] = []

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        streams.append(writer)

    broker = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = broker.sockets[0].getsockname()
    try:
        yield f"redis://{host}:{port}"
    finally:
        broker.close()
        for stream in streams:
            stream.close()
        await broker.wait_closed()


@contextlib.asynccontextmanager
async def missing_broker() -> AsyncGenerator[str]:
    """Name an address at which nobody listens."""
    async with frozen_broker() as url:
        pass
    yield url


@pytest.mark.parametrize("broker", [frozen_broker, missing_broker])
async def test_e05_without_a_broker_events_get_their_positions_and_hubs_find_them(
    database_url: TestDatabase, broker: "partial[contextlib.AbstractAsyncContextManager[str]]"
) -> None:
    accounts = await create_accounts(database_url, 2)
    async with (
        broker() as url,
        connect(database_url.runtime_url) as poster,
        server(database_url, broadcast_url=url, pace=QUICK, poll_seconds=0.05) as there,
    ):
        watch = there.hub.watch(accounts)
        watch.take()
        posted = [await move(poster, accounts) for _ in range(5)]
        assert await watch.changed(PATIENCE_SECONDS) <= set(accounts)
        await until(lambda: there.hub.position == 5)
    # Leaving the block has ended everything, although the broker doesn't answer.
    assert await pending(database_url) == 0
    check_log(await read_events(database_url), posted)


async def test_publishing_without_a_broker_is_refused(database_url: TestDatabase) -> None:
    async with missing_broker() as url:
        link = BroadcastLink(partial(open_broadcast, url, database_url.runtime_url))
        with pytest.raises(BroadcastUnavailableError):
            await link.publish(DOORBELL_CHANNEL, "")


async def test_publishing_to_a_broker_that_freezes_is_given_up(
    database_url: TestDatabase, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with freezing_proxy(database_url.runtime_url, tmp_path) as (url, frozen):
        link = BroadcastLink(partial(open_broadcast, url, ""), publish_timeout_seconds=0.05)
        link.listen("news", heard.append)
        async with running(link.run()):
            await until(lambda: len(heard) == 2)
            frozen.set()
            with pytest.raises(BroadcastUnavailableError):
                await link.publish("news", "hello")


async def test_a_message_reaches_every_process_after_each_was_told_to_resynchronise(
    database_url: TestDatabase,
) -> None:
    heard: tuple[list[str], list[str]] = ([], [])
    links = [
        BroadcastLink(partial(open_broadcast, None, database_url.runtime_url)) for _ in range(2)
    ]
    for link, inbox in zip(links, heard, strict=True):
        link.listen("news", inbox.append)
    async with running(*(link.run() for link in links)):
        # Told twice: when the subscription was made, and when the server had taken it on.
        await until(lambda: [len(inbox) for inbox in heard] == [2, 2])
        await links[0].publish("news", "hello")
        await until(lambda: [len(inbox) for inbox in heard] == [3, 3])
    assert heard == ([RESYNC, RESYNC, "hello"], [RESYNC, RESYNC, "hello"])


async def test_a_receiver_that_fails_is_not_the_end_of_the_link(database_url: TestDatabase) -> None:
    heard: list[str] = []

    def receive(message: str) -> None:
        heard.append(message)
        if message == "poison":
            raise ZeroDivisionError

    link = BroadcastLink(partial(open_broadcast, "memory://", database_url.runtime_url))
    link.listen("news", receive)
    async with running(link.run()):
        await until(lambda: heard == [RESYNC])
        await link.publish("news", "poison")
        await until(lambda: heard == [RESYNC, "poison", RESYNC])
        await link.publish("news", "hello")
        await until(lambda: heard[-1] == "hello")


async def test_the_doorbell_wakes_a_relay_in_another_process(database_url: TestDatabase) -> None:
    accounts = await create_accounts(database_url, 1)
    never = RelayPace(poll_seconds=NEVER_SECONDS)
    async with (
        server(database_url, relays=False) as ringing,
        server(database_url, pace=never) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch = there.hub.watch(accounts)
        doorbell = Doorbell(ringing.link)
        async with running(doorbell.run()):
            for sequence in range(1, 4):
                await move(poster, accounts)

                async def delivered(sequence: int = sequence) -> bool:
                    doorbell.ring()
                    return len(await read_events(database_url)) == sequence

                await until(delivered)
                assert await watch.changed(PATIENCE_SECONDS) == set(accounts)
                watch.seen(accounts[0], sequence)


async def test_however_often_the_bell_is_rung_it_is_published_with_pauses(
    database_url: TestDatabase,
) -> None:
    """A ring for each posting would cost as many notifications."""
    rings: list[str] = []
    link = BroadcastLink(partial(open_broadcast, "memory://", database_url.runtime_url))
    link.listen(DOORBELL_CHANNEL, rings.append)
    doorbell = Doorbell(link, pause_seconds=NEVER_SECONDS)
    async with running(link.run(), doorbell.run()):
        await until(lambda: rings == [RESYNC])
        for _ in range(1_000):
            doorbell.ring()
            await asyncio.sleep(0)
        await until(lambda: len(rings) > 1)
    assert rings == [RESYNC, ""]


async def test_everything_ends_when_it_is_cancelled_wherever_it_is(
    database_url: TestDatabase,
) -> None:
    """Broadcaster turns a cancellation into a KeyError at the wrong moment, and its link would run on."""
    for url in (None, "memory://"):
        for turns in range(30):
            pool = Database(database_url.runtime_url, pool_size=3, probes_only=True)
            link = BroadcastLink(
                partial(open_broadcast, url, database_url.runtime_url), pulse_seconds=0.01
            )
            relay = Relay(pool, link)
            async with asyncio.timeout(PATIENCE_SECONDS), running(link.run(), relay.run()):
                for _ in range(turns * 3):
                    await asyncio.sleep(0)
            await pool.close()

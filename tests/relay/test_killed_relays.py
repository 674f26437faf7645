"""E01: relays are processes that are killed with SIGKILL while they work; whoever subscribes sees each fact once."""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

from app.relay.feeds import follow_entries
from tests.relay.support import (
    PATIENCE_SECONDS,
    pending,
    read_events,
    read_lines,
    running,
    server,
    until,
)
from tests.support.ledger import running_ledger
from tests.support.postgres import TestDatabase

_PROJECT = Path(__file__).parents[2]
_KILLS = 5
_NEVER_SECONDS = 10.0 * PATIENCE_SECONDS


@contextlib.asynccontextmanager
async def relay_process(database: TestDatabase) -> AsyncGenerator[None]:
    """Run a relay, and kill it at the end of the block, wherever it is."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.relay.relay_process", database.runtime_url),
        cwd=_PROJECT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        await process.stdout.readuntil(b"ready\n")
        yield
    finally:
        process.kill()
        await process.wait()


async def test_e01_relays_are_killed_again_and_again_and_a_feed_shows_every_entry_once(
    database_url: TestDatabase,
) -> None:
    async with (
        running_ledger(database_url.runtime_url) as ledger,
        server(database_url, relays=False) as there,
    ):
        wallet = await ledger.wallet("alice")
        posted = 0

        async def post() -> None:
            nonlocal posted
            while True:
                await ledger.deposit(wallet.account, 1)
                posted += 1

        feed = follow_entries(
            there.hub,
            partial(read_lines, there.database),
            wallet.id,
            0,
            poll_seconds=_NEVER_SECONDS,
        )
        seen: list[int] = []

        async def follow() -> None:
            async for line in feed:
                seen.append(line.sequence)  # noqa: PERF401 - the test looks at the list while it grows

        async with contextlib.aclosing(feed), running(follow()):
            async with relay_process(database_url), running(post()):
                for _ in range(_KILLS):
                    async with relay_process(database_url):
                        shown = len(seen)
                        await until(lambda shown=shown: len(seen) > shown)
                        await asyncio.sleep(random.uniform(0.0, 0.05))
            async with relay_process(database_url):

                async def is_empty() -> bool:
                    return await pending(database_url) == 0

                await until(is_empty)
                entries = (await read_lines(there.database, wallet.id, 0, 1_000_000))[-1].sequence
                await until(lambda: len(seen) == entries)
            events = await read_events(database_url)
            await until(lambda: there.hub.position == len(events))
    assert seen == list(range(1, entries + 1))
    assert entries >= posted
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    assert len({event.transaction_id for event in events}) == len(events) == entries

"""A server that is killed under load loses nothing that it has acknowledged and books nothing twice.

The client does what a careful one must: it notes each key before it sends the request, and sends what was not answered again
under the same key once the server is back. Nothing here is spared: the server dies by `kill -9`, in every second round
together with its PostgreSQL, at a moment that depends on how many answers have come.
"""

import asyncio
import itertools
import random
from pathlib import Path

import httpx
import psutil
import pytest

from app.embedded import SUPERUSER
from tests.processes.load import (
    FUNDS,
    WAITS_FOR_LOCK,
    Journal,
    check_books,
    payer_row,
    postgres_of,
    retry,
    send,
    sending,
)
from tests.processes.running import RunningServer, Wallets, client_of
from tests.processes.waiting import until
from tests.support.postgres import connect, scalar

ROUNDS = 20
AGAIN = 300


@pytest.mark.timeout(300)
async def test_l07_killed_under_load_again_and_again_every_key_is_booked_once(
    data_dir: Path,
) -> None:
    journal = Journal()
    keys = itertools.count(1)
    wallets: Wallets | None = None
    for number in range(ROUNDS):
        with RunningServer(data_dir) as server:
            if wallets is None:
                async with client_of(server) as client:
                    wallets = await Wallets.open(server, client, funds=FUNDS)
            await retry(server, wallets, journal, journal.unanswered)
            postgres = psutil.Process(postgres_of(data_dir).process_id)
            async with sending(server, wallets, journal, keys):
                await journal.answers(random.randint(1, 300))
                if number % 2 == 1:
                    postgres.kill()
                server.kill()
    assert wallets is not None
    with RunningServer(data_dir) as server:
        await retry(server, wallets, journal, journal.unanswered)
        assert journal.acknowledged.keys() == journal.sent
        # Keys that were answered long ago are answered with the same transactions again.
        await retry(server, wallets, journal, random.sample(sorted(journal.sent), AGAIN))
        await check_books(data_dir, wallets, journal)
        assert server.stop() == 0


async def test_l07_killed_while_it_waits_for_a_lock_the_key_stays_usable(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=FUNDS)
        url = postgres_of(data_dir).url(role=SUPERUSER)
        payer = await payer_row(data_dir, wallets)
        journal = Journal()

        async def somebody_waits() -> bool:
            return await scalar(url, WAITS_FOR_LOCK) > 0

        async with (
            connect(url) as holder,
            client_of(server) as client,
            holder.transaction(),
            asyncio.TaskGroup() as tasks,
        ):
            await holder.execute("select from account where id = $1 for update", payer)
            tasks.create_task(cut_off(client, wallets, journal))
            await until(somebody_waits, "the transfer waits for the lock")
            server.kill()
        assert journal.acknowledged == {}
    with RunningServer(data_dir) as server:
        await retry(server, wallets, journal, journal.unanswered)
        await check_books(data_dir, wallets, journal)
        assert server.stop() == 0


async def cut_off(client: httpx.AsyncClient, wallets: Wallets, journal: Journal) -> None:
    with pytest.raises(httpx.TransportError):
        await send(client, wallets, journal, "the-only-one")

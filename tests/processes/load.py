"""A careful client under load, and the comparison of what it knows with what the tables say.

It notes each key before it sends the request, and sends what was not answered again under the same key.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx

from app.embedded import SUPERUSER, RunningPostgres, find_running
from tests.processes.running import TRANSFER, RunningServer, Wallets, client_of, graphql
from tests.support.postgres import connect, scalar

CLIENTS = 16
FUNDS = 10_000_000

BOOKED = """
select k.key, k.transaction_id, count(e.transaction_id) as legs
from idempotency_key k join journal j on j.id = k.transaction_id join entry e on e.transaction_id = j.id
where k.caller = (select owner from account where id = $1) and j.type = 'transfer'
group by k.key, k.transaction_id
"""
TRANSFERS_OF = "select count(*) from journal where type = 'transfer' and caller = (select owner from account where id = $1)"
WAITS_FOR_LOCK = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"


@dataclass(slots=True)
class Journal:
    """What the client knows: every key it has ever used, and the transaction of each that was answered."""

    sent: set[str] = field(default_factory=set[str])
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    _wanted: int = 0
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def unanswered(self) -> set[str]:
        return self.sent - self.acknowledged.keys()

    def note(self, key: str, transaction_id: str) -> None:
        """Note an answer, which must be the same as any earlier one for the key."""
        assert self.acknowledged.setdefault(key, transaction_id) == transaction_id
        if len(self.acknowledged) >= self._wanted:
            self._reached.set()

    async def answers(self, count: int) -> None:
        """Wait until so many more keys have been answered."""
        self._wanted = len(self.acknowledged) + count
        self._reached.clear()
        await self._reached.wait()


async def send(client: httpx.AsyncClient, wallets: Wallets, journal: Journal, key: str) -> None:
    """Send one transfer and note its answer; raises httpx.TransportError where there is none."""
    journal.sent.add(key)
    answer = await graphql(client, wallets.owner_token, TRANSFER, wallets.transfer(key))
    assert answer["userErrors"] == []
    journal.note(key, answer["transaction"]["id"])


@asynccontextmanager
async def sending(
    server: RunningServer, wallets: Wallets, journal: Journal, keys: "itertools.count[int]"
) -> AsyncGenerator[None]:
    """Send transfers from several clients until the server goes away, which the block must bring about."""

    async def send_until_cut_off() -> None:
        with suppress(httpx.TransportError):
            while True:
                await send(client, wallets, journal, f"transfer-{next(keys)}")

    async with client_of(server) as client, asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(send_until_cut_off())
        yield


async def retry(
    server: RunningServer, wallets: Wallets, journal: Journal, keys: Iterable[str]
) -> None:
    """Send these keys again, all at once."""
    async with client_of(server) as client, asyncio.TaskGroup() as tasks:
        for key in list(keys):
            tasks.create_task(send(client, wallets, journal, key))


def postgres_of(data_dir: Path) -> RunningPostgres:
    running = find_running(data_dir)
    assert running is not None
    return running


async def check_books(data_dir: Path, wallets: Wallets, journal: Journal) -> None:
    """Compare the client's journal with the tables."""
    payer = await payer_row(data_dir, wallets)
    async with connect(postgres_of(data_dir).url(role=SUPERUSER)) as connection:
        booked = {row["key"]: row for row in await connection.fetch(BOOKED, payer)}
        transfers = await connection.fetchval(TRANSFERS_OF, payer)
        total = await connection.fetchval("select sum(amount) from entry")
        balance = await connection.fetchval("select balance from account where id = $1", payer)
    assert booked.keys() == journal.sent
    assert transfers == len(journal.sent)
    assert all(row["legs"] == 2 for row in booked.values())
    assert total == 0
    assert balance == FUNDS - len(journal.sent)


async def payer_row(data_dir: Path, wallets: Wallets) -> UUID:
    """Find the payer's row; the API's ids are opaque."""
    url = postgres_of(data_dir).url(role=SUPERUSER)
    return await scalar(url, "select id from account where code = $1", wallets.codes[0])

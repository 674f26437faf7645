"""What the tests of the relay share: accounts, traffic, and a server's relay parts as one thing to start and stop."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit
from uuid import UUID, uuid4

import asyncpg
from sqlalchemy import text

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.drain import Relay, RelayPace
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from tests.support.postgres import TestDatabase, connect

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PATIENCE_SECONDS = 30
"""No test depends on how long anything takes; this only ends one that would wait for ever."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    position: int
    transaction_id: UUID
    account_ids: Sequence[UUID]
    sequences: Sequence[int]


async def create_accounts(database: TestDatabase, count: int) -> list[UUID]:
    ids = sorted(uuid4() for _ in range(count))
    async with connect(database.owner_url) as owner:
        await owner.executemany(
            "insert into account (id, kind, currency, allow_negative) values ($1, 'LIABILITY', 'BRL', true)",
            [(each,) for each in ids],
        )
    return ids


async def move(connection: Connection, account_ids: Iterable[UUID]) -> UUID:
    """Do to accounts and outbox what a posting does: lock the accounts in order, number, write the event."""
    transaction_id = uuid4()
    ids = sorted(account_ids)
    async with connection.transaction():
        await lock(connection, ids)
        await tell(connection, transaction_id, ids)
    return transaction_id


async def lock(connection: Connection, account_ids: Iterable[UUID]) -> None:
    await connection.fetch(
        "select id from account where id = any($1::uuid[]) order by id for no key update",
        list(account_ids),
    )


async def tell(connection: Connection, transaction_id: UUID, account_ids: Iterable[UUID]) -> None:
    """Pay 1 into each account out of a new one, which nobody else can wait for, and write the event of the former."""
    payer = uuid4()
    await connection.execute(
        "insert into account (id, kind, currency, allow_negative) values ($1, 'LIABILITY', 'BRL', true)",
        payer,
    )
    await connection.execute(
        """
        with legs as materialized (
          select a.id, a.balance + m.amount as balance, a.sequence + 1 as sequence, m.amount, m.leg
          from (
            select id, 1 as amount, row_number() over (order by id) as leg from unnest($2::uuid[]) as id
            union all
            select $3::uuid, -cardinality($2::uuid[]), 0
          ) as m
          join account as a on a.id = m.id
        ), moved as (
          update account as a set balance = l.balance, sequence = l.sequence from legs as l where a.id = l.id
        ), booked as (
          insert into journal (id, type, caller, effective_at, posted_at)
          values ($1, 'test', 'test', now(), now())
        ), entered as (
          insert into entry (
            account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at
          )
          select id, sequence, $1, leg, 'BRL', amount, balance, now() from legs
        )
        insert into outbox (transaction_id, account_ids, sequences)
        select $1, array_agg(id order by id), array_agg(sequence order by id) from legs where leg > 0
        """,
        transaction_id,
        list(account_ids),
        payer,
    )


async def read_events(database: TestDatabase) -> list[LoggedEvent]:
    async with connect(database.runtime_url) as connection:
        rows = await connection.fetch(
            "select position, transaction_id, account_ids, sequences from event order by position"
        )
    return [LoggedEvent(*row.values()) for row in rows]


async def pending(database: TestDatabase) -> int:
    async with connect(database.runtime_url) as connection:
        return int(await connection.fetchval("select count(*) from outbox"))


def check_log(events: Sequence[LoggedEvent], transaction_ids: Iterable[UUID]) -> None:
    """Positions have no holes, every transaction is there once, and no account's sequence ever goes backwards."""
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    assert sorted(event.transaction_id for event in events) == sorted(transaction_ids)
    reached: dict[UUID, int] = {}
    for event in events:
        for account_id, sequence in zip(event.account_ids, event.sequences, strict=True):
            assert sequence == reached.get(account_id, 0) + 1, (
                f"account {account_id} at position {event.position}"
            )
            reached[account_id] = sequence


async def until(condition: Callable[[], bool] | Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Wait for something that gives no signal of its own."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = condition()
            if answer is True or (asyncio.iscoroutine(answer) and await answer):
                return
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(
    *works: Coroutine[Any, Any, object],
) -> AsyncGenerator[list["asyncio.Task[object]"]]:
    """Run these beside the block, and cancel them at its end; one that fails fails the block."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(work) for work in works]
        try:
            yield started
        finally:
            for task in started:
                task.cancel()


@dataclass(frozen=True, slots=True)
class Server:
    """The relay parts of one server process."""

    database: Database
    link: BroadcastLink
    hub: Hub
    relay: Relay


_server_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def server(
    database: TestDatabase,
    *,
    broadcast_url: str | None = None,
    relays: bool = True,
    pace: RelayPace | None = None,
    poll_seconds: float = 1.0,
    pulse_seconds: float = 5.0,
) -> AsyncGenerator[Server]:
    """Run what a server process runs, with or without a relay of its own; ready when its hub has read the log."""
    name = f"server {next(_server_numbers)}"
    pool = Database(database.runtime_url, pool_size=4, application_name=name, pool_timeout_ms=5_000)
    relay_pool = Database(
        database.runtime_url, pool_size=2, application_name=f"{name} relay", probes_only=True
    )
    link = BroadcastLink(
        partial(open_broadcast, broadcast_url, database.runtime_url), pulse_seconds=pulse_seconds
    )
    hub = Hub(pool, link, poll_seconds=poll_seconds)
    relay = Relay(relay_pool, link, pace or RelayPace())
    works = [link.run(), hub.run(), *([relay.run()] if relays else [])]
    try:
        async with running(*works):
            await until(lambda: hub.position is not None)
            yield Server(pool, link, hub, relay)
    finally:
        await pool.close()
        await relay_pool.close()


async def listening_processes(database: TestDatabase) -> list[int]:
    """Return the server's process ids of the connections that listen for events of this database."""
    async with connect(database.superuser_url) as superuser:
        rows = await superuser.fetch(
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'saldo listen'"
        )
    return [row["pid"] for row in rows]


async def terminate(database: TestDatabase, application_name_like: str) -> int:
    """End connections from the server's side, and return how many there were."""
    async with connect(database.superuser_url) as superuser:
        return int(
            await superuser.fetchval(
                """
                select count(pg_terminate_backend(pid)) from pg_stat_activity
                where datname = current_database() and application_name like $1
                """,
                application_name_like,
            )
        )


@dataclass(frozen=True, slots=True)
class Line:
    """An entry, as far as a feed must get it right."""

    sequence: int
    transaction_id: UUID


@dataclass(frozen=True, slots=True)
class State:
    """What an account has, as far as a feed must get it right."""

    account_id: UUID
    available: int
    held: int
    sequence: int


async def read_lines(
    database: Database, account_id: UUID, sequence: int, limit: int
) -> Sequence[Line]:
    async with database.read_only() as connection:
        rows = await connection.execute(
            text(
                """
                select sequence, transaction_id from entry
                where account_id = :account_id and sequence > :sequence order by sequence limit :limit
                """
            ),
            {"account_id": account_id, "sequence": sequence, "limit": limit},
        )
        return [Line(*row) for row in rows]


async def read_states(database: Database, account_ids: Collection[UUID]) -> dict[UUID, State]:
    async with database.read_only() as connection:
        rows = await connection.execute(
            text(
                """
                select a.id, a.balance, coalesce(held.balance, 0), a.sequence
                from account a left join account held on held.parent_id = a.id and held.purpose = 'HELD'
                where a.id = any(cast(:ids as uuid[]))
                """
            ),
            {"ids": list(account_ids)},
        )
        return {row[0]: State(*row) for row in rows}


def socket_of(url: str) -> Path:
    """Find the socket of a server from a URL of its database."""
    query = parse_qs(urlsplit(url).query)
    return Path(query["host"][0]) / f".s.PGSQL.{query['port'][0]}"


def moved_to(url: str, directory: Path) -> str:
    """Name the same database at a socket in another directory."""
    return url.replace(quote(str(socket_of(url).parent)), quote(str(directory)))


@contextlib.asynccontextmanager
async def freezing_proxy(url: str, directory: Path) -> AsyncGenerator[tuple[str, asyncio.Event]]:
    """Stand between client and server; while the event is set, nothing that either sends gets through.

    Gives the URL by which the server is reached through the directory.
    """
    socket = socket_of(url)
    frozen = asyncio.Event()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65_536):
                if not frozen.is_set():
                    writer.write(chunk)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_unix_connection(socket)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(copy(reader, upstream_writer))
            tasks.create_task(copy(upstream_reader, writer))

    proxy = await asyncio.start_unix_server(serve, directory / socket.name)
    try:
        yield moved_to(url, directory), frozen
    finally:
        proxy.close()
        await proxy.wait_closed()

"""Where the processor time of one transfer goes: each layer driven by itself, with all that lies below it.

Everything runs in one process with 64 transfers in flight, and the time of the process and of PostgreSQL's processes is
counted per transfer. The cost of a layer is its figure less that of the layer below. HTTP is measured in a process of its
own, so that the load isn't counted with it; see `bench.api`. Usage: python -m bench.layers
"""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg
import psutil
import uvloop
from uuid_utils.compat import uuid7

from app.database import Database
from app.driver import DriverConnections
from app.embedded import OWNER, SUPERUSER, EmbeddedPostgres, RunningPostgres
from app.ledger.model import Caller, Scope
from app.ledger.money import Money
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.posting.decision import Posted
from app.ledger.posting.engine import EngineLimits, PostingEngine
from app.ledger.reader import Reader
from app.ledger.reading.lookups import Lookups
from app.ledger.requests import PostingRequest
from app.ledger.service import Ledger
from app.migrate import upgrade
from app.relay.broadcast import open_broadcast
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from app.schema import Limits, Services, build_schema
from app.schema.context import Context
from app.schema.ids import encode_account_id
from app.tokens import Claims, Tokens
from bench.api import TRANSFER
from bench.machine import describe_machine

IN_FLIGHT: Final = 64
SECONDS: Final = 8
WALLETS: Final = 10_000
CALLER: Final = Caller("bench", frozenset({Scope.WALLET}))


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time per transfer, in microseconds."""

    ours: float
    database: float
    rate: float


def main() -> None:
    """Measure the layers and print a table."""
    with (
        tempfile.TemporaryDirectory(prefix="saldo-bench-") as directory,
        EmbeddedPostgres(Path(directory)) as server,
    ):
        upgrade(server.url(role=OWNER))
        costs = uvloop.run(_measure_all(server))
    print(f"{describe_machine()}, {IN_FLIGHT} transfers in flight\n")
    print("| driven | this process, µs | PostgreSQL, µs | transfers/s |")
    print("| --- | ---: | ---: | ---: |")
    for name, cost in costs.items():
        print(f"| {name} | {cost.ours:.0f} | {cost.database:.0f} | {cost.rate:,.0f} |")


async def _measure_all(server: RunningPostgres) -> dict[str, Cost]:
    ids = await _open_wallets(server)
    shown = [encode_account_id(each) for each in ids]
    limits = EngineLimits()
    reading = Database(server.url())
    posting = DriverConnections(server.url())
    engine = PostingEngine(posting, limits)
    ledger = Ledger(reading, engine, Lookups(posting), uuid7)
    hub = Hub(reading, BroadcastLink(lambda: open_broadcast("memory://", server.url())))
    services = Services(ledger, Reader(reading), hub, Tokens("x" * 32), Limits())
    schema = build_schema()
    claims = Claims(CALLER, datetime.now(UTC) + timedelta(hours=1))

    def command() -> TransferCommand:
        sender, receiver = random.sample(ids, 2)
        return TransferCommand(str(uuid7()), sender, receiver, Money(100, "BRL"))

    async def build_only() -> None:
        transfer(command(), CALLER.subject, uuid7())

    async def through_engine() -> None:
        request = transfer(command(), CALLER.subject, uuid7())
        assert isinstance(request, PostingRequest)
        (outcome,) = await engine.post((request,))
        assert isinstance(outcome, Posted)

    async def through_ledger() -> None:
        assert isinstance(await ledger.transfer(CALLER, command()), Posted)

    async def through_graphql() -> None:
        sender, receiver = random.sample(shown, 2)
        variables = {
            "input": {
                "idempotencyKey": str(uuid7()),
                "fromAccountId": sender,
                "toAccountId": receiver,
                "amount": {"minorUnits": "100", "currency": "BRL"},
            }
        }
        result = await schema.execute(
            TRANSFER, variable_values=variables, context_value=Context(services, claims)
        )
        assert not result.errors

    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    costs: dict[str, Cost] = {}
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(engine.run())
        for name, drive in (
            ("building the request (pure)", build_only),
            ("posting engine", through_engine),
            ("ledger service", through_ledger),
            ("GraphQL execution", through_graphql),
        ):
            await _measure(server, drive, 1)
            costs[name] = await _measure(server, drive, SECONDS)
        engine.close()
        await running
    await reading.close()
    await posting.close()
    return costs


async def _measure(
    server: RunningPostgres, drive: Callable[[], Awaitable[None]], seconds: float
) -> Cost:
    done = 0
    deadline = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            await drive()
            done += 1

    database, ours, began = _database_seconds(server), time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(client())
    return Cost(
        ours=(time.process_time() - ours) / done * 1e6,
        database=(_database_seconds(server) - database) / done * 1e6,
        rate=done / (time.perf_counter() - began),
    )


def _database_seconds(server: RunningPostgres) -> float:
    postmaster = psutil.Process(server.process_id)
    times = [each.cpu_times() for each in (postmaster, *postmaster.children(recursive=True))]
    return sum(each.user + each.system for each in times)


async def _open_wallets(server: RunningPostgres) -> list[UUID]:
    ids = [uuid7() for _ in range(WALLETS)]
    connection = await asyncpg.connect(server.url(role=SUPERUSER))
    try:
        await connection.execute(
            "insert into account (id, owner, kind, currency, allow_negative)"
            " select unnest($1::uuid[]), $2, 'LIABILITY', 'BRL', true",
            ids,
            CALLER.subject,
        )
        await connection.execute("vacuum analyze account")
    finally:
        await connection.close()
    return ids


if __name__ == "__main__":
    main()

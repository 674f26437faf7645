"""How many transfers a second the posting engine books, beside its peers on the same server in the same run.

The engine runs in this process, without HTTP: 256 requests in flight, 100,000 wallets, everything on (idempotency keys,
outbox, triggers, durable commits). The peers are driven by pgbench: one stored function per transfer that does the same
work on the same tables, and the statement sequence of a textbook design on tables of its own. Each is measured in turn, round
by round, so that a change of the machine's mood hits all; the table shows medians. Usage: python -m bench.posting --help
"""

import asyncio
import gc
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import asyncpg
import typer
import uvloop
from uuid_utils.compat import uuid7

from app.driver import DriverConnections
from app.embedded import (
    OWNER,
    RUNTIME,
    SUPERUSER,
    EmbeddedPostgres,
    RunningPostgres,
    postgres_binaries,
)
from app.ledger.engine import EngineLimits, PostingEngine
from app.ledger.money import Money
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.posting import Posted
from app.ledger.requests import PostingRequest
from app.migrate import upgrade
from bench.machine import describe_machine

SQL: Final = Path(__file__).parent / "sql"
DATABASE: Final = "bench"
IN_FLIGHT: Final = 256
HOT_WALLET: Final = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    wallets: int
    seconds: int
    rounds: int


def wallet_id(number: int) -> UUID:
    """Make the id of a wallet from its number, as the SQL function of the same name does."""
    return UUID(f"00000000-0000-7000-8000-{number:012x}")


def main(
    wallets: Annotated[int, typer.Option(help="How many wallets there are.")] = 100_000,
    seconds: Annotated[int, typer.Option(help="How long each contestant runs in each round.")] = 15,
    rounds: Annotated[int, typer.Option(help="How often each contestant runs.")] = 3,
) -> None:
    """Measure the posting engine beside its peers and print a table."""
    plan = Plan(wallets, seconds, rounds)
    with (
        tempfile.TemporaryDirectory(prefix="saldo-bench-") as directory,
        EmbeddedPostgres(Path(directory)) as server,
    ):
        server.create_database(DATABASE)
        upgrade(server.url(DATABASE, OWNER))
        asyncio.run(_prepare(server, plan))
        contestants: dict[str, Callable[[], float]] = {
            "engine, random pairs": lambda: uvloop.run(_engine(server, plan, hot=False)),
            "engine, one account takes every credit": lambda: uvloop.run(
                _engine(server, plan, hot=True)
            ),
            "stored function, random pairs, 8 clients": lambda: _stored(
                server, plan, clients=8, hot=0
            ),
            "stored function, random pairs, 32 clients": lambda: _stored(
                server, plan, clients=32, hot=0
            ),
            "stored function, one account takes every credit": lambda: _stored(
                server, plan, clients=8, hot=HOT_WALLET
            ),
            "textbook statements, random pairs, 8 clients": lambda: _textbook(
                server, plan, clients=8
            ),
        }
        rates: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(plan.rounds):
            for name, measure in contestants.items():
                rate = measure()
                rates[name].append(rate)
                print(f"round {number + 1}: {name}: {rate:,.0f}/s", flush=True)
        asyncio.run(_prove_balanced(server))
    _report(plan, rates)


async def _prepare(server: RunningPostgres, plan: Plan) -> None:
    connection = await asyncpg.connect(server.url(DATABASE, SUPERUSER))
    try:
        await connection.execute((SQL / "stored_function.sql").read_text(encoding="utf-8"))
        await connection.execute((SQL / "seed_schema.sql").read_text(encoding="utf-8"))
        await connection.execute(
            f"grant usage on schema textbook to {RUNTIME}; "
            f"grant all on all tables in schema textbook to {RUNTIME}; "
            f"grant all on all sequences in schema textbook to {RUNTIME}"
        )
        # Wallets may fall below zero here, so that no transfer is refused and each does all of its work.
        await connection.execute(
            "insert into account (id, owner, kind, currency, allow_negative)"
            " select wallet_id(n), 'bench', 'LIABILITY', 'BRL', true from generate_series(1, $1::bigint) n",
            plan.wallets,
        )
        await connection.execute(
            "insert into textbook.account (id, owner_id, currency, allow_negative)"
            " select n, n, 'BRL', true from generate_series(1, $1::bigint) n",
            plan.wallets,
        )
        await connection.execute("vacuum analyze account")
        await connection.execute("vacuum analyze textbook.account")
        await connection.execute("checkpoint")
    finally:
        await connection.close()


async def _engine(server: RunningPostgres, plan: Plan, *, hot: bool) -> float:
    limits = EngineLimits()
    connections = DriverConnections(server.url(DATABASE, RUNTIME))
    engine = PostingEngine(connections, limits)
    ids = [wallet_id(number) for number in range(1, plan.wallets + 1)]
    hot_id = wallet_id(HOT_WALLET)
    # As the server does after its start.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    done = 0
    deadline = time.perf_counter() + plan.seconds

    def request() -> PostingRequest:
        sender, receiver = random.sample(ids, 2)
        if hot:
            sender, receiver = (sender if sender != hot_id else receiver), hot_id
        made = transfer(
            TransferCommand(str(uuid7()), sender, receiver, Money(100, "BRL")), "bench", uuid7()
        )
        assert isinstance(made, PostingRequest)
        # The owner of all wallets is the caller.
        return made

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            (outcome,) = await engine.post((request(),))
            assert isinstance(outcome, Posted)
            done += 1

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(engine.run())
        started = time.perf_counter()
        clients = [tasks.create_task(client()) for _ in range(IN_FLIGHT)]
        await asyncio.wait(clients)
        elapsed = time.perf_counter() - started
        engine.close()
        await running
    await connections.close()
    return done / elapsed


def _stored(server: RunningPostgres, plan: Plan, *, clients: int, hot: int) -> float:
    return _pgbench(server, plan, "stored_function.pgbench", clients, {"hot": hot})


def _textbook(server: RunningPostgres, plan: Plan, *, clients: int) -> float:
    return _pgbench(server, plan, "textbook.pgbench", clients, {})


def _pgbench(
    server: RunningPostgres, plan: Plan, script: str, clients: int, variables: dict[str, int]
) -> float:
    defined = [
        f"--define={name}={value}" for name, value in {"wallets": plan.wallets, **variables}.items()
    ]
    output = subprocess.run(
        [
            str(postgres_binaries() / "pgbench"),
            "--no-vacuum",
            "--protocol=prepared",
            f"--host={server.socket_directory}",
            f"--username={RUNTIME}",
            f"--client={clients}",
            "--jobs=2",
            f"--time={plan.seconds}",
            f"--file={SQL / script}",
            *defined,
            DATABASE,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rate = next(line for line in output.splitlines() if line.startswith("tps = "))
    return float(rate.split()[2])


async def _prove_balanced(server: RunningPostgres) -> None:
    """Fail unless everything that was measured is a sound ledger."""
    connection = await asyncpg.connect(server.url(DATABASE, SUPERUSER))
    try:
        total = await connection.fetchval("select coalesce(sum(amount), 0) from entry")
        off = await connection.fetchval(
            "select count(*) from account a where balance <>"
            " (select coalesce(sum(amount), 0) from entry e where e.account_id = a.id)"
        )
        if total != 0 or off != 0:
            raise AssertionError(
                f"the ledger is off: sum {total}, {off} accounts differ from their entries"
            )
    finally:
        await connection.close()


def _report(plan: Plan, rates: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(values) for name, values in rates.items()}
    peer = max(
        rate for name, rate in medians.items() if name.startswith("stored function, random pairs")
    )
    print(f"\n{describe_machine()}")
    print(
        f"PostgreSQL 18, durable; medians of {plan.rounds} rounds of {plan.seconds} s, {plan.wallets:,} wallets\n"
    )
    print("| way of posting | transfers/s | against the stored function |")
    print("| --- | ---: | ---: |")
    for name, rate in medians.items():
        print(f"| {name} | {rate:,.0f} | {rate / peer:.2f} |")


if __name__ == "__main__":
    typer.run(main)

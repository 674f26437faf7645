"""Does one kind of work for some seconds, and counts; usually as a process of its own, of which several begin together.

Such a process opens its connections, warms up, writes READY, waits for a line on its standard input, works, and writes what
it has counted as JSON. Usage: python -m bench.posting.driver --help
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, Annotated, Final
from uuid import UUID

import typer
import uvloop
from uuid_utils.compat import uuid7

from app.database import Database
from app.driver import DriverConnections
from app.ledger.posting.engine import EngineLimits, PostingEngine
from app.ledger.reading.lookups import Lookups
from app.ledger.service import Ledger
from bench.posting.workloads import Client, Work, Workload, wallet_id, work_of

READY: Final = "ready"
WARM_UP_SECONDS: Final = 0.5

_PATIENT: Final = EngineLimits(deadline_ms=30_000)
"""Here a slow machine shows in the figures; being turned away would only hide how slow it is."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is to be done, by all processes together."""

    workload: Workload
    wallets: int
    in_flight: int
    """Requests that are under way at a time."""
    seconds: float
    receiver: UUID | None = None
    """Who takes every credit."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one process has booked, and how long that took."""

    movements: int
    elapsed_seconds: float

    @property
    def rate(self) -> float:
        """Movements a second."""
        return self.movements / self.elapsed_seconds


@asynccontextmanager
async def running_ledger(url: str) -> AsyncGenerator[Ledger]:
    """Put a ledger together as the server does, and run its engine for as long as the block lasts."""
    reading, posting = Database(url), DriverConnections(url)
    engine = PostingEngine(posting, _PATIENT)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            try:
                yield Ledger(reading, engine, Lookups(posting), uuid7)
            finally:
                engine.close()
    finally:
        await posting.close()
        await reading.close()


def drive(url: str, assignment: Assignment, *, processes: int) -> float:
    """Do the work with so many processes, which share the requests in flight; returns movements a second of all."""
    in_flight = assignment.in_flight // processes
    command = [
        *(sys.executable, "-m", "bench.posting.driver", url, assignment.workload),
        *(f"--wallets={assignment.wallets}", f"--in-flight={in_flight}"),
        f"--seconds={assignment.seconds}",
        *([] if assignment.receiver is None else [f"--receiver={assignment.receiver}"]),
    ]
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(processes)
        ]
        stack.callback(_kill_all, started)
        if any(_pipe(each.stdout).readline().strip() != READY for each in started):
            raise RuntimeError("a driver didn't start; its standard error says why")
        for each in started:
            _pipe(each.stdin).write("\n")
            _pipe(each.stdin).flush()
        answers = [_pipe(each.stdout).read() for each in started]
    if not all(answers):
        raise RuntimeError("a driver broke down; its standard error says why")
    return sum(Count(**json.loads(answer)).rate for answer in answers)


def main(  # noqa: PLR0917 - a command line names its options
    url: Annotated[str, typer.Argument(help="The database.")],
    workload: Annotated[Workload, typer.Argument(help="What is done.")],
    wallets: Annotated[int, typer.Option(help="How many wallets there are.")],
    in_flight: Annotated[int, typer.Option(help="Requests under way at a time.")] = 256,
    seconds: Annotated[float, typer.Option(help="How long.")] = 15,
    receiver: Annotated[UUID | None, typer.Option(help="The account that takes credits.")] = None,
) -> None:
    """Do one kind of work in this process and print what was counted as JSON."""
    count = uvloop.run(_work(url, Assignment(workload, wallets, in_flight, seconds, receiver)))
    print(json.dumps({"movements": count.movements, "elapsed_seconds": count.elapsed_seconds}))


async def _work(url: str, assignment: Assignment) -> Count:
    wallets = [wallet_id(number) for number in range(1, assignment.wallets + 1)]
    async with running_ledger(url) as ledger:
        work = work_of(Client(ledger, wallets), assignment.workload, assignment.receiver)
        # Afterwards all connections are open, all statements prepared, and the hot accounts known.
        await _repeat(work, assignment.in_flight, WARM_UP_SECONDS)
        # As the server does after its start.
        gc.collect()
        gc.freeze()
        print(READY, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await _repeat(work, assignment.in_flight, assignment.seconds)


async def _repeat(work: Work, in_flight: int, seconds: float) -> Count:
    movements = 0
    began = time.perf_counter()

    async def client() -> None:
        nonlocal movements
        while time.perf_counter() < began + seconds:
            # In two steps: `+=` would read the count before it waits, and forget what others count meanwhile.
            booked = await work()
            movements += booked

    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(client())
    return Count(movements, time.perf_counter() - began)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _kill_all(processes: list[subprocess.Popen[str]]) -> None:
    for each in processes:
        each.kill()


if __name__ == "__main__":
    typer.run(main)

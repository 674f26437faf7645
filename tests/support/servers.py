"""Further servers of the same ledger: processes, each with an engine of its own, that post when told to.

A process gets its work as a line of JSON, says `ready` once its engine runs, and begins at the line `go`. So all of them
begin at the same moment. It answers with a line of JSON, and then waits for more work until its input ends.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import structlog

from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.ledger.money import Money
from app.ledger.movements.transfers import TransferCommand
from app.ledger.posting import Posted, Refused
from tests.support.ledger import CURRENCY, RunningLedger, running_ledger, wallet_user

_PROJECT = Path(__file__).parents[2]

POSTED = "POSTED"
REPLAYED = "REPLAYED"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer that a process is to make."""

    owner: str
    key: str
    source: UUID
    target: UUID
    minor_units: int
    currency: str = CURRENCY


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a transfer: POSTED, REPLAYED, the code of a refusal, or the name of an error."""

    outcome: str
    transaction_id: str | None = None


Work = Sequence[Sequence[Transfer]]
"""What one process does: each inner sequence one after another, all of them at the same time."""


class Servers:
    """Processes that stay for as long as the tests, because starting one costs more than what it is asked to do."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    async def post(self, url: str, *works: Work) -> list[list[list[Answer]]]:
        """Give each process its work, start all at the same moment, and return the answers in the shape of the work."""
        busy = self._processes[: len(works)]
        assert len(busy) == len(works)
        for process, work in zip(busy, works, strict=True):
            order = {"url": url, "work": [[asdict(transfer) for transfer in row] for row in work]}
            # The driver has a UUID class of its own, which orjson does not know.
            _write(process, orjson.dumps(order, default=str))
        for process in busy:
            assert await _read(process) == b"ready\n"
        for process in busy:
            _write(process, b"go")
        lines = await asyncio.gather(*(_read(process) for process in busy))
        return [
            [[Answer(**answer) for answer in answers] for answers in orjson.loads(line)]
            for line in lines
        ]


@contextlib.asynccontextmanager
async def servers(count: int) -> AsyncGenerator[Servers]:
    """Start processes and end them by closing their input."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.support.servers"),
            cwd=_PROJECT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        for _ in range(count)
    ]
    try:
        yield Servers(processes)
    finally:
        for process in processes:
            await process.communicate(b"")


def _write(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")


async def _read(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.readline()


async def make_transfer(running: RunningLedger, transfer: Transfer) -> Answer:
    """Make a transfer and put its outcome into words."""
    command = TransferCommand(
        key=transfer.key,
        from_account_id=UUID(str(transfer.source)),
        to_account_id=UUID(str(transfer.target)),
        amount=Money(transfer.minor_units, transfer.currency),
    )
    try:
        answer = await running.ledger.transfer(wallet_user(transfer.owner), command)
    except (LedgerIncidentError, LedgerUnavailableError) as error:
        return Answer(type(error).__name__)
    match answer:
        case Posted(transaction, _, replayed):
            return Answer(REPLAYED if replayed else POSTED, str(transaction.id))
        case Refused(refusal):
            return Answer(refusal.code.value)
        case _:
            raise AssertionError(answer)


async def _serve(order: Any) -> list[list[Answer]]:
    async def one_after_another(row: list[Any]) -> list[Answer]:
        return [await make_transfer(running, Transfer(**transfer)) for transfer in row]

    async with running_ledger(order["url"]) as running:
        # The pool connects when it is first used; that must not be part of the race.
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(running.postings.transaction())
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await asyncio.gather(*(one_after_another(row) for row in order["work"]))


async def _main() -> None:
    # The standard output belongs to the answers.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    while line := await asyncio.to_thread(sys.stdin.readline):
        answers = await _serve(orjson.loads(line))
        print(orjson.dumps(answers).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())

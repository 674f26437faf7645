"""Further servers of the same ledger: processes, each with an engine of its own, that post when told to.

A process gets its work as a line, says `ready` once its engine runs, and begins at the line `go`. So all of them begin at
the same moment. It answers with a line, and then waits for more work until its input ends. Work and answers are pickled,
so that any command of `Ledger` can be sent as it is, and written in base 64, so that each is one line. What runs there is
`tests.support.server_process`.
"""

import asyncio
import base64
import contextlib
import pickle
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from app.ledger.model import Caller
from app.ledger.money import Money
from app.ledger.movements.transfers import TransferCommand
from tests.support.ledger import CURRENCY, wallet_user

_PROJECT = Path(__file__).parents[2]

POSTED = "POSTED"
REPLAYED = "REPLAYED"
DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of `Ledger` that a process is to make."""

    method: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    not_before: datetime | None = None
    """Wait until then by this machine's clock, to meet what happens at that instant."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer that a process is to make."""

    owner: str
    key: str
    source: UUID
    target: UUID
    minor_units: int
    currency: str = CURRENCY

    def call(self) -> Call:
        command = TransferCommand(
            key=self.key,
            from_account_id=self.source,
            to_account_id=self.target,
            amount=Money(self.minor_units, self.currency),
        )
        return call("transfer", wallet_user(self.owner), command)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call: POSTED, REPLAYED, the code of a refusal, the name of an error, or DONE for anything else."""

    outcome: str
    transaction_id: str | None = None
    count: int = 0
    """What a job of the ledger's own returned."""


Work: TypeAlias = Sequence[Sequence[Transfer | Call]]
"""What one process does: each inner sequence one after another, all of them at the same time."""

Answers: TypeAlias = list[list[list[Answer]]]
"""What became of it: for each process, in the shape of its work."""


def call(method: str, caller: Caller, command: object, **options: Any) -> Call:
    """Make a call on behalf of a caller."""
    return Call(method, (caller, command), options)


def outcomes(answers: Answers) -> Counter[str]:
    """Count the outcomes, whichever process they came from."""
    return Counter(answer.outcome for answer in chain.from_iterable(chain.from_iterable(answers)))


class Servers:
    """Processes that stay for as long as the tests, because starting one costs more than what it is asked to do."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    async def post(self, url: str, *works: Work) -> Answers:
        """Give each process its work, start all at the same moment, and return the answers."""
        busy = self._processes[: len(works)]
        assert len(busy) == len(works)
        for process, work in zip(busy, works, strict=True):
            calls = [
                [one.call() if isinstance(one, Transfer) else one for one in row] for row in work
            ]
            _write(process, packed((url, calls)))
        for process in busy:
            assert await _read(process) == b"ready\n"
        for process in busy:
            _write(process, b"go")
        lines = await asyncio.gather(*(_read(process) for process in busy))
        return [unpacked(line) for line in lines]


@contextlib.asynccontextmanager
async def servers(count: int) -> AsyncGenerator[Servers]:
    """Start processes and end them by closing their input."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.support.server_process"),
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


def packed(value: object) -> bytes:
    """Write a value as one line, without its end."""
    return base64.b64encode(pickle.dumps(value))


def unpacked(line: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(base64.b64decode(line))  # noqa: S301 - both ends of the pipe are these tests


def _write(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")


async def _read(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.readline()

"""The program that `servers` starts: an engine that posts what it is told to."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence

import structlog

from app.ledger.answers import HoldPosted
from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.ledger.posting.decision import Posted, Refused
from tests.support.ledger import RunningLedger, running_ledger
from tests.support.servers import DONE, POSTED, REPLAYED, Answer, Call, packed, unpacked


async def _make(running: RunningLedger, wanted: Call) -> Answer:
    """Make a call and put its outcome into words."""
    if wanted.not_before is not None:
        await asyncio.sleep(wanted.not_before.timestamp() - time.time())
    of_its_own = hasattr(running.upkeep, wanted.method)
    method = getattr(running.upkeep if of_its_own else running.ledger, wanted.method)
    try:
        answer = await method(*wanted.arguments, **wanted.options)
    except (LedgerIncidentError, LedgerUnavailableError) as error:
        return Answer(type(error).__name__)
    match answer:
        case Refused(refusal):
            return Answer(refusal.code.value)
        case Posted() | HoldPosted():
            return Answer(REPLAYED if answer.replayed else POSTED, str(answer.transaction.id))
        case int():
            return Answer(DONE, count=answer)
        case _:
            return Answer(DONE)


async def _serve(url: str, work: Sequence[Sequence[Call]]) -> list[list[Answer]]:
    async def one_after_another(row: Sequence[Call]) -> list[Answer]:
        return [await _make(running, wanted) for wanted in row]

    async with running_ledger(url) as running:
        # The pool connects when it is first used; that must not be part of the race.
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(running.postings.transaction())
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await asyncio.gather(*(one_after_another(row) for row in work))


async def _main() -> None:
    # The standard output belongs to the answers.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    while line := await asyncio.to_thread(sys.stdin.readline):
        url, work = unpacked(line.encode())
        print(packed(await _serve(url, work)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())

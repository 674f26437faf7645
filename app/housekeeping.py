"""What every server does again and again beside serving: holds expire, hot accounts are swept, snapshots are taken.

Several servers may do it at once: each piece of work is booked once, whoever is first. Their pauses vary, so that they
don't stay in step. A run that fails is logged, counted and tried again after a pause that grows while it goes on failing; it
never ends the process, for what isn't done now is done later, and nothing relies on when.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from prometheus_client import Counter

from app import metrics
from app.ledger.errors import LedgerUnavailableError

log = structlog.get_logger(__name__)

_LONGEST_BACKOFF_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is looked for at intervals."""

    name: str
    """Label of the metrics."""
    every_seconds: float
    run: Callable[[], Awaitable[int]]
    """Does what there is to do, or a bounded part of that, and tells how much it was."""
    done: Counter
    """Counts what `run` did."""
    bounded: bool = False
    """Whether one run may leave something to do, so that the next follows at once until there is nothing."""


class Housekeeping:
    """Keeps jobs running; run `run()` in a task."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        """Take the jobs, which run beside each other."""
        self._jobs = jobs

    async def run(self) -> None:
        """Run every job at its intervals until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for job in self._jobs:
                tasks.create_task(_repeat(job))


async def _repeat(job: Job) -> None:
    failures_in_a_row = 0
    # Servers that were started together begin at different times.
    await asyncio.sleep(job.every_seconds * random.random())  # noqa: S311 - jitter, not a secret
    while True:
        try:
            await _run_to_the_end(job)
        except Exception as error:
            # Whatever it is, the other jobs and the server go on.
            failures_in_a_row += 1
            metrics.HOUSEKEEPING_FAILURES.labels(job.name).inc()
            if isinstance(error, LedgerUnavailableError):
                log.warning("housekeeping waits for the database", job=job.name)
            else:
                log.exception("housekeeping failed and is tried again", job=job.name)
        else:
            failures_in_a_row = 0
            metrics.HOUSEKEEPING_LAST_SUCCESS.labels(job.name).set_to_current_time()
        await asyncio.sleep(_pause_seconds(job, failures_in_a_row))


async def _run_to_the_end(job: Job) -> None:
    while True:
        count = await job.run()
        job.done.inc(count)
        if count == 0 or not job.bounded:
            return


def _pause_seconds(job: Job, failures_in_a_row: int) -> float:
    """Vary the interval by up to a quarter; after failures it doubles each time, up to a minute where it isn't longer."""
    longest = max(job.every_seconds, _LONGEST_BACKOFF_SECONDS)
    # The exponent is bounded as well, or a failure that lasts for days would end in an overflow.
    pause = min(job.every_seconds * 2.0 ** min(failures_in_a_row, 20), longest)
    return pause * random.uniform(0.75, 1.25)  # noqa: S311 - see above

"""Housekeeping goes on whatever happens: a job that fails is seen, tried again later, and disturbs nobody."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, Counter
from structlog.testing import capture_logs

from app.housekeeping import Housekeeping, Job, _pause_seconds, _run_to_the_end
from app.ledger.errors import LedgerUnavailableError
from tests.support.ledger import metric

SOON = 0.001
FAILURES = "saldo_housekeeping_failures_total"
LAST_SUCCESS = "saldo_housekeeping_last_success_timestamp_seconds"

_numbers = itertools.count(1)


def job(run: Callable[[], Awaitable[int]], *, bounded: bool = False) -> Job:
    """Make a job with a name and a counter of its own."""
    done = Counter("done", "What the job did.", registry=CollectorRegistry())
    return Job(f"job {next(_numbers)}", SOON, run, done, bounded=bounded)


def done(work: Job) -> float:
    (family,) = work.done.collect()
    return next(sample.value for sample in family.samples if sample.name == "done_total")


async def keep_house(until: asyncio.Event, *jobs: Job) -> None:
    """Run the jobs until the event is set, and for a turn of the loop more."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(Housekeeping(jobs).run())
        await until.wait()
        await asyncio.sleep(0)
        assert not running.done()
        running.cancel()


async def test_a_job_runs_again_and_again_and_what_it_does_is_counted() -> None:
    third = asyncio.Event()
    calls = itertools.count(1)

    async def run() -> int:
        if next(calls) == 4:
            third.set()
            await asyncio.Event().wait()
        return 5

    work = job(run)
    await keep_house(third, work)

    assert done(work) == 15
    assert metric(LAST_SUCCESS, job=work.name) > 0
    assert metric(FAILURES, job=work.name) == 0


@pytest.mark.parametrize(
    ("error", "level"), [(RuntimeError("injected"), "error"), (LedgerUnavailableError(), "warning")]
)
async def test_a_run_that_fails_is_logged_counted_and_tried_again(
    error: Exception, level: str
) -> None:
    healed = asyncio.Event()
    calls = itertools.count(1)

    async def run() -> int:
        if next(calls) < 3:
            raise error
        healed.set()
        return 1

    work = job(run)
    with capture_logs() as logged:
        await keep_house(healed, work)

    assert metric(FAILURES, job=work.name) == 2
    assert [entry["log_level"] for entry in logged] == [level, level]
    assert all(entry["job"] == work.name for entry in logged)
    assert done(work) >= 1


async def test_a_job_that_fails_or_hangs_keeps_no_other_from_running() -> None:
    going_on = asyncio.Event()
    calls = itertools.count(1)

    async def fail() -> int:
        raise RuntimeError("injected")

    async def hang() -> int:
        await asyncio.Event().wait()
        return 0

    async def run() -> int:
        if next(calls) == 10:
            going_on.set()
        return 1

    failing, hanging, working = job(fail), job(hang), job(run)
    with capture_logs():
        await keep_house(going_on, failing, hanging, working)

    assert metric(FAILURES, job=failing.name) >= 1
    assert metric(LAST_SUCCESS, job=failing.name) == 0
    assert done(hanging) == 0


@pytest.mark.parametrize(("bounded", "expected"), [(True, 1_020), (False, 500)])
async def test_a_bounded_job_goes_on_without_a_pause_until_nothing_is_left(
    bounded: bool, expected: int
) -> None:
    left = [500, 500, 20, 0]

    async def run() -> int:
        return left.pop(0)

    work = job(run, bounded=bounded)
    await _run_to_the_end(work)

    assert done(work) == expected


@pytest.mark.parametrize(
    ("every_seconds", "failures", "longest"),
    [(1.0, 0, 1.0), (1.0, 1, 2.0), (1.0, 3, 8.0), (1.0, 100_000, 60.0), (3_600.0, 9, 3_600.0)],
)
def test_pauses_vary_and_grow_with_failures_up_to_a_bound(
    every_seconds: float, failures: int, longest: float
) -> None:
    async def run() -> int:
        return 0

    work = replace(job(run), every_seconds=every_seconds)
    pauses = [_pause_seconds(work, failures) for _ in range(100)]

    assert all(longest * 0.75 <= pause <= longest * 1.25 for pause in pauses)
    assert len(set(pauses)) > 1

"""Calls that are answered together: how many readings that takes, how fresh an answer is, and who learns of a failure."""

import asyncio
import gc
from collections.abc import Mapping, Sequence

import pytest

from app.ledger.reading.gathering import Gatherer


class Source:
    """Something to read, each reading of which ends when the test says so."""

    def __init__(self) -> None:
        self.values = {"a": 1, "b": 2}
        self.readings: list[list[str]] = []
        self.began = asyncio.Semaphore(0)
        self.may_end = asyncio.Semaphore(0)
        self.broken = False

    async def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        self.readings.append(list(keys))
        found = {key: self.values[key] for key in keys if key in self.values}
        self.began.release()
        await self.may_end.acquire()
        if self.broken:
            raise ConnectionError("gone")
        return found


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def gatherer(source: Source) -> Gatherer[str, int]:
    return Gatherer(source.read)


def call(gatherer: Gatherer[str, int], key: str) -> "asyncio.Future[int | None]":
    return asyncio.ensure_future(gatherer.get(key))


async def test_a_call_that_comes_alone_is_answered_at_once(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    source.may_end.release()
    assert await gatherer.get("a") == 1
    source.may_end.release()
    assert await gatherer.get("nothing") is None
    assert source.readings == [["a"], ["nothing"]]


async def test_calls_that_come_during_a_reading_share_the_next_one(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    first = call(gatherer, "a")
    await source.began.acquire()
    others = [call(gatherer, key) for key in ("b", "a", "nothing", "b", "a")]
    await asyncio.sleep(0)  # Each of them has asked now.
    source.may_end.release()
    source.may_end.release()

    assert await first == 1
    assert [await each for each in others] == [2, 1, None, 2, 1]
    assert source.readings == [["a"], ["b", "a", "nothing"]]


async def test_an_answer_is_never_older_than_its_call(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    """The reading that is under way has seen the old value, so it is not for who asks for the same key now."""
    early = call(gatherer, "a")
    await source.began.acquire()
    source.values["a"] = 10
    late = call(gatherer, "a")
    await asyncio.sleep(0)
    source.may_end.release()
    source.may_end.release()

    assert (await early, await late) == (1, 10)


async def test_a_failure_reaches_everybody_who_waits_for_it_and_nobody_else(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    first = call(gatherer, "a")
    await source.began.acquire()
    second = [call(gatherer, key) for key in ("a", "b", "a")]
    await asyncio.sleep(0)
    source.may_end.release()
    assert await first == 1
    source.broken = True
    source.may_end.release()
    for each in second:
        with pytest.raises(ConnectionError):
            await each
    source.broken = False
    source.may_end.release()
    assert await gatherer.get("b") == 2


async def test_a_caller_that_is_cancelled_takes_nothing_from_the_others(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    """Neither the one that began the reading, nor one of those that wait for the same key, nor a failure unseen."""
    first, same = call(gatherer, "a"), call(gatherer, "a")
    await source.began.acquire()
    first.cancel()
    queued, other = call(gatherer, "b"), call(gatherer, "b")
    await asyncio.sleep(0)
    queued.cancel()
    await asyncio.wait([first, queued])
    source.may_end.release()
    source.may_end.release()

    assert first.cancelled()
    assert queued.cancelled()
    assert (await same, await other) == (1, 2)
    assert source.readings == [["a"], ["b"]]


async def test_a_failure_that_nobody_waits_for_any_more_disturbs_nobody(
    source: Source, gatherer: Gatherer[str, int]
) -> None:
    unheard: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: unheard.append(context["message"]))
    try:
        source.broken = True
        only = call(gatherer, "a")
        await source.began.acquire()
        only.cancel()
        later = call(gatherer, "b")
        await asyncio.wait([only])
        source.may_end.release()
        await source.began.acquire()  # The next reading has begun, so the first has failed.
        source.broken = False
        source.may_end.release()
        assert await later == 2
        del only
        gc.collect()  # Now at the latest, whatever was raised and never asked for is told to the loop.
    finally:
        loop.set_exception_handler(None)
    assert unheard == []

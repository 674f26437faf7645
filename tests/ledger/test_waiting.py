"""The engine's queue: who may go together, who must wait for whom, and that nobody is lost."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger.posting.decision import PostingGroup
from app.ledger.posting.waiting import PostingQueue, Waiting


@dataclass(frozen=True)
class Request:
    """As much of a request as the queue looks at: that it is one."""

    number: int


_numbers = iter(range(10**9))


def waiting(*accounts: int, size: int = 1, since: float = 0.0) -> Waiting:
    group = cast("PostingGroup", tuple(Request(next(_numbers)) for _ in range(size)))
    answer = cast("asyncio.Future[Any]", None)
    return Waiting(group, answer, since, frozenset(UUID(int=account) for account in accounts))


def queue_of(*all_waiting: Waiting) -> PostingQueue:
    queue = PostingQueue()
    for each in all_waiting:
        queue.add(each)
    return queue


def test_a_share_is_taken_in_order_of_arrival() -> None:
    a, b, c = waiting(1, 2), waiting(3, 4), waiting(5, 6)
    queue = queue_of(a, b, c)

    assert queue.take(2, 10) == [a, b]
    assert queue.take(2, 10) == [c]
    assert not queue


def test_who_wants_an_account_of_the_batch_goes_with_it_beyond_the_share() -> None:
    """Nobody else could take it meanwhile: so one busy account makes one batch."""
    hot = [waiting(1, number) for number in range(2, 12)]
    queue = queue_of(*hot)

    assert queue.take(3, 8) == hot[:8]
    assert queue.take(3, 8) == []
    queue.done(hot[:8])
    assert queue.take(3, 8) == hot[8:]


def test_an_account_under_way_keeps_its_requests_back_until_it_is_done() -> None:
    first, same, other = waiting(1, 2), waiting(2, 3), waiting(4, 5)
    queue = queue_of(first)
    batch = queue.take(10, 10)

    assert not queue.add(same)
    assert queue.add(other)
    assert queue.take(10, 10) == [other]
    queue.done(batch)
    assert queue.take(10, 10) == [same]


def test_nobody_overtakes_another_of_the_same_account() -> None:
    """The deposit waits for an account under way, so the spend of what it brings waits behind it.

    Without what is left behind being counted as blocked, the spend is taken first.
    """
    under_way, deposit, spend = waiting(1), waiting(1, 2), waiting(2, 3)
    queue = queue_of(under_way)
    batch = queue.take(10, 10)
    queue.add(deposit)
    queue.add(spend)

    assert queue.take(10, 10) == []
    queue.done(batch)
    assert queue.take(10, 10) == [deposit, spend]


def test_a_group_larger_than_a_batch_is_taken_alone() -> None:
    large, small = waiting(1, size=50), waiting(2)
    queue = queue_of(large, small)

    assert queue.take(10, 20) == [large]
    assert queue.take(10, 20) == [small]


def test_the_late_stand_in_front_and_are_dropped() -> None:
    early, late = waiting(1, size=3, since=1.0), waiting(2, since=2.0)
    queue = queue_of(early, late)

    assert queue.drop(before=2.0) == [early]
    assert len(queue) == 1
    assert queue.drop() == [late]
    assert len(queue) == 0


@pytest.mark.parametrize("workers", [1, 2, 3])
@settings(max_examples=60)
@given(
    groups=st.lists(
        st.tuples(st.sets(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 4)),
        max_size=40,
    ),
    turns=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=60),
)
def test_every_group_goes_once_in_the_order_of_each_account_and_never_beside_its_own(
    workers: int, groups: list[tuple[set[int], int]], turns: list[tuple[int, bool]]
) -> None:
    all_waiting = [waiting(*accounts, size=size) for accounts, size in groups]
    queue = queue_of(*all_waiting)
    under_way: list[list[Waiting]] = []
    gone: list[Waiting] = []

    def finish() -> None:
        queue.done(under_way.pop(0))

    for share, finishing in [*turns, *((8, True) for _ in all_waiting)]:
        if under_way and (finishing or len(under_way) == workers):
            finish()
        batch = queue.take(share, 8)
        if batch:
            assert disjoint(batch, *under_way)
            under_way.append(batch)
            gone += batch
    while under_way:
        finish()
    while batch := queue.take(8, 8):
        gone += batch
        queue.done(batch)

    assert len(queue) == 0
    assert sorted(map(id, gone)) == sorted(map(id, all_waiting))
    for account in range(1, 7):
        assert list(of(account, gone)) == list(of(account, all_waiting))


def of(account: int, all_waiting: Iterable[Waiting]) -> Iterator[Waiting]:
    return (each for each in all_waiting if UUID(int=account) in each.account_ids)


def disjoint(batch: list[Waiting], *others: list[Waiting]) -> bool:
    mine = {account for each in batch for account in each.account_ids}
    theirs = {account for other in others for each in other for account in each.account_ids}
    return mine.isdisjoint(theirs)

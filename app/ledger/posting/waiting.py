"""Requests that wait for a batch, and which of them may go while another batch is under way.

Two batches of one process that want the same account would only wait for each other's locks, with a connection each. So
a request stays here for as long as one of its accounts is under way, and whatever comes later for one of its accounts
stays behind it: each account sees its requests in their order of arrival, and nobody waits in the database for a
neighbour. Batches of other processes are kept apart by the locks alone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from app.ledger.posting.decision import Outcome, PostingGroup

Outcomes: TypeAlias = tuple[Outcome, ...]

_LOOK_PAST: Final = 1_000
"""How many groups that can't go are looked past before those behind them are left for another time."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A group of requests, the promise of their outcomes, and since when it waits by the loop's clock."""

    group: PostingGroup
    answer: "asyncio.Future[Outcomes]"
    since: float
    account_ids: frozenset[UUID]


class PostingQueue:
    """Groups of requests in their order of arrival; those that are taken count as under way until they are done."""

    def __init__(self) -> None:
        """Begin empty."""
        self._waiting: deque[Waiting] = deque()
        self._under_way: set[UUID] = set()
        self._requests = 0

    def __len__(self) -> int:
        """Count the requests that wait, whatever their groups."""
        return self._requests

    def add(self, waiting: Waiting) -> bool:
        """Let a group wait, and tell whether nothing that is under way keeps it from going."""
        self._waiting.append(waiting)
        self._requests += len(waiting.group)
        return self._under_way.isdisjoint(waiting.account_ids)

    def take(self, share: int, most: int) -> list[Waiting]:
        """Take groups that may go: `share` requests, and up to `most` of those that nobody else could take meanwhile.

        A group that is larger by itself is taken alone. What another group of the batch keeps from going elsewhere goes
        with it; so the requests for one busy account make one batch, and those for many accounts are shared out.
        """
        batch: list[Waiting] = []
        left: list[Waiting] = []
        mine: set[UUID] = set()
        blocked = set(self._under_way)
        requests = 0
        while self._waiting and len(left) < _LOOK_PAST and requests < most:
            waiting = self._waiting.popleft()
            size = requests + len(waiting.group)
            fits = (
                not batch
                or size <= share
                or (size <= most and not mine.isdisjoint(waiting.account_ids))
            )
            if fits and blocked.isdisjoint(waiting.account_ids):
                batch.append(waiting)
                mine |= waiting.account_ids
                requests = size
            else:
                left.append(waiting)
                blocked |= waiting.account_ids
        self._waiting.extendleft(reversed(left))
        self._under_way |= mine
        self._requests -= requests
        return batch

    def done(self, batch: Iterable[Waiting]) -> None:
        """Say that a batch isn't under way any more."""
        for waiting in batch:
            self._under_way -= waiting.account_ids

    def drop(self, before: float | None = None) -> list[Waiting]:
        """Remove those that wait since before an instant of the loop's clock, or all."""
        dropped: list[Waiting] = []
        while self._waiting and (before is None or self._waiting[0].since < before):
            dropped.append(self._waiting.popleft())
        self._requests -= sum(len(waiting.group) for waiting in dropped)
        return dropped

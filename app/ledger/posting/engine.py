"""The one door through which money moves: lock, read, decide in memory, write, commit; many requests at a time.

Shape. Requests wait in a bounded queue. A few workers, each with a connection of its own, take whatever has gathered
while they were busy and post it as one database transaction. There is no timer: an idle engine posts a single request
at once, and under load batches grow by themselves.

Cost. Five round trips for a batch of any size: begin, lock, known keys, write, commit. One more each for what a batch has of
held children that are new, hot accounts (two where they are derived), holds that end or begin, and reversals.

Failure. What the database refuses for a whole batch is tried again group by group, so that only the culprit fails.
Deadlocks, serialization failures and lost connections are tried again with a bound; after a lost COMMIT the second try
finds its own keys and answers replays. A caller that goes away takes nothing with it: its request is posted or refused
like any other. Who would wait longer than the deadline for a place in a batch is told LedgerUnavailableError.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import asyncpg
import structlog

from app import metrics
from app.database import (
    DatabaseUnavailableError,
    constraint_of,
    is_contention,
    sqlstate_of,
)
from app.driver import Connection, DriverConnections
from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.ledger.movements.postings import BUILT_IN_TYPES
from app.ledger.posting import store
from app.ledger.posting.changes import Posted
from app.ledger.posting.decision import NotAttempted, PostingGroup, Refused, decide
from app.ledger.posting.hot import HotAccounts, LockPlan
from app.ledger.posting.standing import LockedAccount, Standing
from app.ledger.posting.waiting import Outcomes, PostingQueue, Waiting
from app.ledger.requests import CloseHold, PostingRequest, TakeBack

log = structlog.get_logger(__name__)


_OUT_OF_REACH: Final = "out_of_reach"
_KEY_RACE: Final = "key_race"
_HOT_ACCOUNT: Final = "hot_account"
"""Reasons for trying a batch again, beside SQLSTATEs; labels of a metric."""

_PARTNERS_TYPE: Final = "partner"
"""How a metric calls all types of transactions that aren't built in."""

_AT_ONCE: Final = frozenset({_KEY_RACE, _HOT_ACCOUNT})
"""The reasons that are gone by the time they are known."""

_REVERSAL: Final = "journal_reversal"
"""The constraint that counts how often a transaction was reversed or refunded."""

_SWEEP_SECONDS: Final = 0.05
_FIRST_BACKOFF_SECONDS: Final = 0.01
_LONGEST_BACKOFF_SECONDS: Final = 0.5


def _nobody_waits() -> None:
    """Stand in for who wants to know of commits."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The engine's bounds."""

    batch_max: int = 256
    """Requests in one database transaction; a larger group is posted by itself."""
    in_flight: int = 2
    """Database transactions under way at a time, and so connections in use."""
    queue_max: int = 5_000
    """Requests that may wait."""
    deadline_ms: int = 500
    """How long a request may wait for its batch to begin, and a batch for a database that is out of reach."""
    retry_seconds: float = 5.0
    """How long a batch that deadlocks or meets booked keys is tried again."""


class HotAccountMetError(Exception):
    """A batch wanted the row of a hot account as if it were an ordinary one; it must plan its locks anew."""


class PostingEngine:
    """Posts groups of requests; run `run()` in a task for as long as anything is to be posted."""

    def __init__(
        self,
        connections: DriverConnections,
        limits: EngineLimits,
        *,
        committed: Callable[[], None] = _nobody_waits,
    ) -> None:
        """Use at most `limits.in_flight` connections at a time.

        `committed` is called after each commit that has booked something; it must return at once and raise nothing.
        """
        self._connections = connections
        self._limits = limits
        self._committed = committed
        self._queue = PostingQueue()
        self._hot = HotAccounts()
        self._idle = 0
        """Workers that are about to take a batch or wait for one."""
        self._stirred = asyncio.Event()
        """Set when a group may go that couldn't before."""
        self._closing = False

    async def post(self, group: PostingGroup) -> Outcomes:
        """Book all requests of the group or none, and tell the outcome of each.

        Raises LedgerUnavailableError where there is no place in time or the database is out of reach, after which the
        same keys may safely be sent again, and LedgerIncidentError for a fault of ours.
        """
        return await self.enqueue(group)

    def enqueue(self, group: PostingGroup) -> "asyncio.Future[Outcomes]":
        """Put the group in the queue and return the promise of its outcomes; raises LedgerUnavailableError if full."""
        # An empty queue takes any group: one that is larger than the bound would otherwise never be posted.
        full = bool(self._queue) and len(self._queue) + len(group) > self._limits.queue_max
        if self._closing or full:
            reason = "closing" if self._closing else "queue_full"
            metrics.POSTINGS_TURNED_AWAY.labels(reason).inc(len(group))
            raise LedgerUnavailableError
        loop = asyncio.get_running_loop()
        account_ids = frozenset[UUID]().union(*map(self._hot.contended, group))
        waiting = Waiting(group, loop.create_future(), loop.time(), account_ids)
        if self._queue.add(waiting):
            self._stirred.set()
        return waiting.answer

    async def run(self) -> None:
        """Post until cancelled or closed; a closed engine first posts what is already queued."""
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._work()) for _ in range(self._limits.in_flight)]
                sweeper = tasks.create_task(self._turn_away_the_late())
                await asyncio.wait(workers)
                sweeper.cancel()
        finally:
            # Nobody takes from the queue any more, so nobody may be left in it or join it.
            self._closing = True
            _fail(self._queue.drop(), LedgerUnavailableError())

    def close(self) -> None:
        """Take no more requests; `run()` returns once the queue is empty."""
        self._closing = True
        self._stirred.set()

    async def _work(self) -> None:
        while True:
            batch = await self._next_batch()
            if not batch:
                return
            try:
                await self._post_batch(batch)
            finally:
                # Where posting was broken off, by cancellation or a fault, nobody is left without an answer.
                _fail(batch, LedgerUnavailableError())
                self._queue.done(batch)
                self._stirred.set()

    async def _next_batch(self) -> list[Waiting]:
        """Wait for a batch; empty once the engine is closed and nothing is left to post.

        A worker takes its share and leaves theirs to the idle: one that took everything would leave the database waiting
        while it decides, and itself waiting while the database writes.
        """
        self._idle += 1
        try:
            # Whoever was answered a moment ago may have the next request ready; it goes along.
            await asyncio.sleep(0)
            while True:
                share = min(self._limits.batch_max, -(-len(self._queue) // self._idle))
                batch = self._queue.take(share, self._limits.batch_max)
                if batch:
                    metrics.POSTING_BATCH_SIZE.observe(sum(len(each.group) for each in batch))
                    waited = asyncio.get_running_loop().time() - batch[0].since
                    metrics.POSTING_QUEUE_WAIT.observe(waited)
                    return batch
                if self._closing and not self._queue:
                    return batch
                self._stirred.clear()
                await self._stirred.wait()
        finally:
            self._idle -= 1

    async def _turn_away_the_late(self) -> None:
        """Answer those who have waited too long; the queue is in order of arrival, so they stand in front."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            metrics.POSTING_QUEUE_DEPTH.set(len(self._queue))
            late = self._queue.drop(before=loop.time() - self._limits.deadline_ms / 1000)
            if late:
                metrics.POSTINGS_TURNED_AWAY.labels("deadline").inc(
                    sum(len(waiting.group) for waiting in late)
                )
                _fail(late, LedgerUnavailableError())

    async def _post_batch(self, batch: list[Waiting]) -> None:
        """Post a batch; where the database refuses it as a whole, post its groups one by one."""
        try:
            outcomes = await self._post_with_retries([waiting.group for waiting in batch])
        except LedgerIncidentError as incident:
            if len(batch) == 1:
                _report(incident, batch[0].group)
                _fail(batch, incident)
                return
            metrics.POSTING_BATCHES_SPLIT.inc()
            await self._post_one_by_one(batch)
        except LedgerUnavailableError as unavailable:
            _fail(batch, unavailable)
        else:
            for waiting, answer in zip(batch, outcomes, strict=True):
                _count(waiting.group, answer)
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)

    async def _post_one_by_one(self, batch: list[Waiting]) -> None:
        for waiting in batch:
            await self._post_batch([waiting])
            answered = waiting.answer
            if not answered.cancelled() and isinstance(
                answered.exception(), LedgerUnavailableError
            ):
                # The others would wait as long for nothing, one after the other.
                _fail(batch, LedgerUnavailableError())
                return

    async def _post_with_retries(self, groups: Sequence[PostingGroup]) -> list[Outcomes]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            try:
                return await self._attempt(groups)
            except Exception as error:
                # A fault that one request brings out must not take its neighbours, or the engine, along.
                reason = _reason_to_retry(error)
                if reason is None:
                    raise LedgerIncidentError from error
                cause = error
            metrics.POSTING_RETRIES.labels(reason).inc()
            patience = (
                self._limits.deadline_ms / 1000
                if reason == _OUT_OF_REACH
                else self._limits.retry_seconds
            )
            if loop.time() > began + patience:
                log.warning("a batch was given up", reason=reason, error=repr(cause.__cause__))
                raise LedgerUnavailableError from cause
            if reason not in _AT_ONCE:
                await asyncio.sleep(backoff * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
                backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)

    async def _attempt(self, groups: Sequence[PostingGroup]) -> list[Outcomes]:
        """Post the groups in one database transaction.

        Raises store.KeyRaceError where a key was booked elsewhere meanwhile, and HotAccountMetError where an account turned
        out to be hot that wasn't known as such; both can be tried again at once.
        """
        requests = [request for group in groups for request in group]
        plan = self._hot.plan(requests)
        with metrics.POSTING_DATABASE_TIME.time():
            async with self._connections.transaction() as connection:
                rows = await self._lock_in_tx(connection, plan)
                standing = await _read_standing_in_tx(connection, requests, plan, rows)
                decision = decide(groups, standing)
                if decision.bookings:
                    await store.write_postings_in_tx(connection, decision)
        if decision.bookings:
            self._committed()
        return decision.outcomes

    async def _lock_in_tx(
        self, connection: Connection, plan: LockPlan
    ) -> Mapping[UUID, LockedAccount]:
        """Lock what the plan names; raises HotAccountMetError where an account turns out to be hot."""
        rows = await store.lock_accounts_in_tx(connection, plan.locked, plan.parents)
        missing = plan.locked.difference(rows)
        if not missing:
            return rows
        hot = await store.hot_accounts(connection, missing)
        if self._hot.learn(hot):
            raise HotAccountMetError
        # A held child that another process made while this one waited for the parent is not in the first statement's
        # snapshot. Now that the parent is locked, whatever there is of children stays.
        found_late = await store.lock_accounts_in_tx(connection, missing, ())
        return {**rows, **found_late}


async def _read_standing_in_tx(
    connection: Connection,
    requests: Sequence[PostingRequest],
    plan: LockPlan,
    rows: Mapping[UUID, LockedAccount],
) -> Standing:
    """Read, under the locks, all that the decision depends on."""
    if plan.stamped:
        await store.enter_hot_in_tx(connection, plan.shared)
    if plan.shared:
        rows = {**rows, **await store.derived_accounts(connection, plan.shared)}
    keys = list({(request.caller, request.key): None for request in requests})
    now, stamp_base, known_keys = await store.known_keys_in_tx(
        connection, keys, stamped=plan.stamped
    )
    standing = Standing(now, rows, known_keys, plan.striped, stamp_base=stamp_base)
    closing = {
        request.terms.hold_id for request in requests if isinstance(request.terms, CloseHold)
    }
    if closing:
        standing = replace(standing, holds=await store.holds_in_tx(connection, closing))
    originals = {
        request.terms.original_id for request in requests if isinstance(request.terms, TakeBack)
    }
    if originals:
        taken_back = await store.taken_back_in_tx(connection, originals)
        standing = replace(standing, taken_back=taken_back)
    return standing


def _fail(batch: Iterable[Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)


def _count(group: PostingGroup, outcomes: Outcomes) -> None:
    for request, outcome in zip(group, outcomes, strict=True):
        match outcome:
            case Refused(refusal):
                label = refusal.code.value.lower()
            case Posted(replayed=False):
                label = "posted"
            case NotAttempted():
                label = "not_attempted"
            case _:
                label = "replayed"
        # Partners name types of their own; one time series for each would be as many as they like.
        kind = request.type if request.type in BUILT_IN_TYPES else _PARTNERS_TYPE
        metrics.POSTINGS.labels(kind, label).inc()


def _reason_to_retry(error: Exception) -> str | None:
    """Tell why the batch may be tried again as it is; None where it would fail again."""
    match error:
        case store.KeyRaceError():
            return _KEY_RACE
        case HotAccountMetError():
            return _HOT_ACCOUNT
        case DatabaseUnavailableError():
            return _OUT_OF_REACH
        case asyncpg.PostgresError() if is_contention(error):
            return sqlstate_of(error)
        case asyncpg.UniqueViolationError() if constraint_of(error) == _REVERSAL:
            # Two took the same transaction back whose accounts nobody locks; the second will see the first.
            return sqlstate_of(error)
        case _:
            return None


def _report(incident: LedgerIncidentError, group: PostingGroup) -> None:
    """Log and count what should not happen; ids go to the log, no amounts."""
    error = incident.__cause__
    refused = isinstance(error, asyncpg.PostgresError)
    constraint = (constraint_of(error) if refused else None) or "none"
    metrics.CONSTRAINT_INCIDENTS.labels(constraint).inc()
    log.error(
        "a posting failed that should have been booked or refused",
        error=type(error).__name__,
        sqlstate=sqlstate_of(error) if refused else None,
        constraint=constraint,
        transactions=[str(request.id) for request in group][:10],
        exc_info=None if refused else error,
    )

"""The relay: it takes committed events from the outbox, in order, and gives each the next position in the log.

Leadership. Any number of relays may run. The one that delivers is the one whose transaction holds the lane's row, and
that very transaction claims the events: a relay that was paused, cut off or taken for dead has no old right to act on.
One that finds the row locked tries again soon, for as long as anything waits in the outbox.

Cost. An idle relay asks one question in each poll. A claim is one short transaction of two statements, without a lock on
any account. Nothing is published inside it: the broker is told afterwards, by a task of its own.

Failure. Whatever happens before the commit never happened; whatever happens after it, the events have their positions
and hubs find them in the log. So publishing is a matter of haste and never of truth.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy.exc import DBAPIError

from app import metrics
from app.database import Database, sqlstate_of
from app.relay import store
from app.relay.announcer import Announcer
from app.relay.floor import Floor
from app.relay.link import BroadcastLink
from app.relay.messages import DOORBELL_CHANNEL, PositionedEvent
from app.relay.retry import jittered, keep_running

log = structlog.get_logger(__name__)

_UNIQUE_VIOLATION: Final = "23505"
_QUEUE_USAGE_ALARM: Final = 0.05
_CLAIM_SECONDS: Final = 15.0
"""Longer than the database's own limits for a statement; ends the wait for a server that no longer answers at all."""


@dataclass(frozen=True, slots=True)
class RelayPace:
    """How much a relay takes at a time and how long it rests."""

    batch_max: int = 1_000
    """Events in one transaction."""
    poll_seconds: float = 0.25
    """Longest rest while nothing wakes the relay."""
    retry_seconds: float = 0.01
    """Rest while another relay delivers and events wait."""
    gather_seconds: float = 0.005
    """Rest between two claims, in which events gather; the first one after a quiet time doesn't wait."""
    measure_seconds: float = 5.0
    """Between two looks at the backlog for the metrics."""
    floor_seconds: float = 1.0
    """Between two steps of raising the floor."""


DEFAULT_PACE: Final = RelayPace()


class Relay:
    """Delivers events; run `run()` in a task, several in as many processes as you like."""

    def __init__(
        self, database: Database, link: BroadcastLink, pace: RelayPace = DEFAULT_PACE
    ) -> None:
        """Take a pool of three connections that was opened with `probes_only`, and the process's link."""
        self._database = database
        self._pace = pace
        self._announcer = Announcer(link)
        self._floor = Floor(database)
        self._bell = asyncio.Event()
        link.listen(DOORBELL_CHANNEL, lambda _: self.wake())

    def wake(self) -> None:
        """Say that an event has been committed; cheap, returns at once."""
        self._bell.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_running("relay: deliver", self._deliver))
            tasks.create_task(keep_running("relay: raise the floor", self._raise_floor))
            tasks.create_task(keep_running("relay: measure", self._measure))
            tasks.create_task(keep_running("relay: announce", self._announcer.run))

    async def _deliver(self) -> None:
        self._floor.fall()
        while True:
            self._bell.clear()
            events = await self._claim()
            if events is None:
                await asyncio.sleep(jittered(self._pace.retry_seconds))
                continue
            if events:
                self._announcer.announce(events)
                await asyncio.sleep(self._pace.gather_seconds)
            if len(events) < self._pace.batch_max:
                await self._rest()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(jittered(self._pace.poll_seconds)):
                await self._bell.wait()
        except TimeoutError:
            return

    async def _claim(self) -> Sequence[PositionedEvent] | None:
        """Give the next events their positions; None means that another relay is doing it."""
        async with asyncio.timeout(_CLAIM_SECONDS):
            async with self._database.read_only() as connection:
                if not await store.outbox_has_events(connection, self._floor.id):
                    return ()
            try:
                claim = await self._claim_in_one_transaction()
            except DBAPIError as error:
                if sqlstate_of(error) != _UNIQUE_VIOLATION or not await self._discard_repeated():
                    raise
                return None
        if claim is None:
            return None
        if claim.events:
            self._floor.has_seen(claim.last_id)
            metrics.RELAY_POSITION.set(claim.events[-1].position)
            metrics.RELAY_DELIVERED.inc(len(claim.events))
        return claim.events

    async def _claim_in_one_transaction(self) -> store.Claim | None:
        async with self._database.transaction() as connection:
            position = await store.lock_lane_in_tx(connection)
            if position is None:
                return None
            return await store.claim_events_in_tx(
                connection, position, self._floor.id, self._pace.batch_max
            )

    async def _discard_repeated(self) -> bool:
        """Drop events that stand twice, of which the log refuses the second; tell whether there were any."""
        async with self._database.transaction() as connection:
            if await store.lock_lane_in_tx(connection) is None:
                return True
            repeated = await store.discard_repeated_events_in_tx(connection)
        if repeated:
            log.error(
                "the outbox held events that were told before",
                transactions=[str(each) for each in repeated[:10]],
            )
        return bool(repeated)

    async def _raise_floor(self) -> None:
        while True:
            await self._floor.rise()
            await asyncio.sleep(jittered(self._pace.floor_seconds))

    async def _measure(self) -> None:
        while True:
            async with self._database.read_only() as connection:
                backlog = await store.measure_backlog(connection, self._floor.id)
            metrics.OUTBOX_PENDING.set(backlog.pending)
            metrics.OUTBOX_LAG.set(backlog.oldest_seconds)
            if backlog.notification_queue_usage > _QUEUE_USAGE_ALARM:
                log.warning(
                    "the notification queue fills: a session that listens keeps a transaction open",
                    usage=backlog.notification_queue_usage,
                )
            await asyncio.sleep(jittered(self._pace.measure_seconds))

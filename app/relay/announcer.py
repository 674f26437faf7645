"""Telling other processes what the log has gained, beside the relay and never in its way.

The relay hands over events that are committed and have their positions; here they wait until they are published. A broker
that is frozen or away holds up nothing but this: the backlog is bounded, what doesn't fit or couldn't be sent is dropped,
and the hubs find it in the log.
"""

import asyncio
from collections import deque
from collections.abc import Iterable

import structlog

from app.relay.link import BroadcastLink, BroadcastUnavailableError
from app.relay.messages import EVENTS_CHANNEL, PositionedEvent, encode, pack
from app.relay.retry import Backoff

log = structlog.get_logger(__name__)


class Announcer:
    """Publishes events in order; run `run()` in a task."""

    def __init__(self, link: BroadcastLink, *, backlog_max: int = 10_000) -> None:
        """Keep at most `backlog_max` events waiting; the oldest go first."""
        self._link = link
        self._backlog: deque[PositionedEvent] = deque(maxlen=backlog_max)
        self._arrival = asyncio.Event()

    def announce(self, events: Iterable[PositionedEvent]) -> None:
        """Have these events published soon; returns at once."""
        self._backlog.extend(events)
        self._arrival.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        backoff = Backoff()
        failing = False
        while True:
            await self._arrival.wait()
            self._arrival.clear()
            events = list(self._backlog)
            self._backlog.clear()
            try:
                for wake_up in pack(events):
                    await self._link.publish(EVENTS_CHANNEL, encode(wake_up))
            except BroadcastUnavailableError as error:
                if not failing:
                    log.warning(
                        "events can't be announced; hubs read the log instead",
                        cause=repr(error.__cause__),
                    )
                failing = True
                await backoff.pause()
            else:
                failing = False
                backoff.reset()

"""The hub: it knows how far the log has come, and wakes the watches of the accounts that moved.

Completeness. The hub remembers the last position up to which it knows every event. A wake-up that begins right behind it
carries it on; any other one shows a hole, and the hub reads the log from its position on. Silence is no proof either, so
it looks at the log every second whether or not anything came in. Duplicates and old messages are harmless: a watch that
is told twice reads once too often.

Doubt. Where the hub can't know what it missed, it tells every watch that anything may have changed: when it begins; after
a break, because the server on the other side may be another one that never had some of the positions; when the log says
that it is shorter than it was, or no longer reaches back to where the hub stood, or has run far ahead.

Load. Handling a message does no I/O. One task reads the log, a page at a time. Feeds take turns for their readings of the
database, so that ten thousand who are woken at once leave its connections to those who move money.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

import structlog

from app import metrics
from app.database import Database
from app.relay import store
from app.relay.link import BroadcastLink
from app.relay.messages import EVENTS_CHANNEL, Resync, Unreadable, WakeUp, decode
from app.relay.retry import jittered, keep_running
from app.relay.watches import Watch, Watches

log = structlog.get_logger(__name__)

_READ_SECONDS: Final = 15.0
"""Longer than the database's own limits for a statement; ends the wait for a server that no longer answers at all."""
_PAGES_BEHIND_MAX: Final = 20
_READERS_MAX: Final = 4


class Hub:
    """Wakes whoever watches an account; one per process, run `run()` in a task."""

    def __init__(
        self,
        database: Database,
        link: BroadcastLink,
        *,
        poll_seconds: float = 1.0,
        page: int = 1_000,
    ) -> None:
        """Read the log through `database`, at least every `poll_seconds` and `page` events at a time."""
        self._database = database
        self._poll_seconds = poll_seconds
        self._page = page
        self._watches = Watches()
        self._position: int | None = None
        self._behind = asyncio.Event()
        self.reading = asyncio.Semaphore(_READERS_MAX)
        """Held by a feed while it reads from the database."""
        link.listen(EVENTS_CHANNEL, self._receive)

    @property
    def position(self) -> int | None:
        """The position up to which every event has been told; None before the log was first read."""
        return self._position

    @property
    def watched_accounts(self) -> int:
        """How many accounts anybody watches."""
        return len(self._watches)

    def watch(self, account_ids: Iterable[UUID]) -> Watch:
        """Register for what moves from now on: open a watch, then read, then wait; close it at the end."""
        return self._watches.add(account_ids)

    async def run(self) -> None:
        """Wake watches until cancelled."""
        await keep_running("hub: follow the log", self._follow_log)

    def _receive(self, text: str) -> None:
        match decode(text):
            case WakeUp() as wake_up:
                self._apply(wake_up)
            case Resync():
                self._watches.tell_doubt()
                self._behind.set()
            case Unreadable():
                self._behind.set()

    def _apply(self, wake_up: WakeUp) -> None:
        """Tell what the message says, whatever its place; then go on by it, or see that something is missing."""
        self._tell(wake_up.reached or {})
        position = self._position
        if position is None or wake_up.last <= position:
            return
        if wake_up.reached is not None and wake_up.first <= position + 1:
            self._advance(wake_up.last)
        else:
            self._behind.set()

    async def _follow_log(self) -> None:
        while True:
            self._behind.clear()
            async with asyncio.timeout(_READ_SECONDS):
                more = await self._read_page()
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(jittered(self._poll_seconds)):
                        await self._behind.wait()

    async def _read_page(self) -> bool:
        """Read what follows the hub's position, and tell whether more may follow.

        Messages go on being received meanwhile, so the hub may be ahead of the page once it is here.
        """
        after = self._position
        async with self._database.read_only() as connection:
            read = await store.read_log(connection, after or 0, self._page)
        if after is None or not self._continues(read, after):
            self._position = None
            self._advance(read.lane_position)
            self._watches.tell_doubt()
            return False
        for event in read.events:
            self._tell(event.reached)
        if read.events:
            metrics.HUB_CATCH_UPS.inc()
            self._advance(read.events[-1].position)
        return len(read.events) == self._page

    def _continues(self, read: store.LogPage, after: int) -> bool:
        """Tell whether a page is the continuation of what the hub knows, and not too far behind to be told singly."""
        first = read.events[0].position if read.events else read.lane_position + 1
        if read.lane_position < after or first != after + 1:
            log.warning(
                "the log doesn't go on where it was left",
                position=after,
                lane_position=read.lane_position,
            )
            return False
        return read.lane_position - after <= _PAGES_BEHIND_MAX * self._page

    def _tell(self, reached: Mapping[UUID, int]) -> None:
        for account_id, sequence in reached.items():
            self._watches.tell(account_id, sequence)

    def _advance(self, position: int) -> None:
        self._position = max(position, self._position or 0)
        metrics.HUB_POSITION.set(self._position)

"""Which Broadcaster backend serves a process, and a Broadcast whose death can be seen."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from broadcaster import Broadcast, Event
from redis.exceptions import RedisError

from app.relay.postgres_backend import PostgresBackend

BROKER_ERRORS: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    RedisError,
)
"""What a backend raises where its broker is away, refuses or doesn't answer."""


class WatchedBroadcast(Broadcast):
    """A Broadcast that tells when its listener has died, and that can be cancelled and closed at any time.

    Broadcaster reads its backend in a task that nobody awaits: where the backend raises, subscribers wait for ever, and
    closing raises the task's failure before it has closed the backend. Leaving its `subscribe` asks the broker first,
    however long that takes, and turns a cancellation into a KeyError where it comes too early.
    """

    _connected = False

    async def connect(self) -> None:
        """Open the backend and begin to listen; close it whether or not this succeeds."""
        await super().connect()
        self._connected = True

    async def open_channel(self, channel: str) -> "asyncio.Queue[Event | None]":
        """Return a queue of what is published on a channel, for as long as this Broadcast lives."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._subscribers.setdefault(channel, set()).add(queue)
        await self._backend.subscribe(channel)
        return queue

    async def ended(self) -> None:
        """Wait until the listener has ended; raises what it died of, if that was an exception."""
        await asyncio.wait({self._listener_task})
        if not self._listener_task.cancelled():
            self._listener_task.result()

    async def disconnect(self) -> None:
        """End the listener, if there is one and whatever has become of it, then close the backend."""
        if self._connected:
            self._listener_task.cancel()
            await asyncio.wait({self._listener_task})
            if not self._listener_task.cancelled():
                # It counts as seen: whoever wanted to know has waited for `ended`.
                self._listener_task.exception()
        await self._backend.disconnect()


def open_broadcast(url: str | None, database_url: str) -> WatchedBroadcast:
    """Choose the backend by the URL's scheme: memory, redis, rediss or postgresql; None is the ledger's own database.

    Nothing is connected yet.
    """
    url = url or database_url
    scheme = urlsplit(url).scheme.partition("+")[0]
    if scheme in {"postgres", "postgresql"}:
        return WatchedBroadcast(backend=PostgresBackend(url))
    return WatchedBroadcast(url)

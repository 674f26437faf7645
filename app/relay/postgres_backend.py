"""Broadcaster's PostgreSQL backend, as a ledger needs it: it comes back after a break and says that it was away.

Connections. One listens and does nothing else, so that it is never inside a transaction, where it would hold up the
server's notification queue for everybody. Another publishes, one message at a time and each in a transaction of its own:
two notifications at once on one connection are refused by the driver, and one inside a posting's transaction would
make all commits queue up behind each other.

Breaks. The listening connection is made, probed and made anew inside `next_published`, which Broadcaster calls for as
long as the backend lives. So there is no task to supervise, and cancelling Broadcaster's reader ends everything. After
each LISTEN the channel's subscriber gets `RESYNC`: what was sent before is unknown.

Memory. The inbox is bounded. Where it overflows its messages are dropped and each channel gets one `RESYNC` instead.
"""

import asyncio
import contextlib
from collections import deque
from typing import Any, Final, TypeAlias

import asyncpg
import structlog
from broadcaster import BroadcastBackend, Event
from sqlalchemy.engine import make_url

from app import metrics
from app.relay.messages import RESYNC
from app.relay.retry import Backoff

log = structlog.get_logger(__name__)

_CONNECT_SECONDS: Final = 5.0
_FAREWELL_SECONDS: Final = 0.3
_BREAKS: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class PostgresBackend(BroadcastBackend):
    """LISTEN and NOTIFY for one Broadcast; see the module."""

    def __init__(self, url: str, *, probe_seconds: float = 5.0, inbox_max: int = 1_000) -> None:
        """Take a postgresql:// URL, with or without a driver's name.

        After `probe_seconds` of silence the server is asked for a sign of life, and has as long to answer.
        """
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._probe_seconds = probe_seconds
        self._inbox_max = inbox_max
        self._inbox: deque[Event] = deque()
        self._stir = asyncio.Event()
        """Set when there is a reason to look: a message, a new channel, a lost connection."""
        self._channels: set[str] = set()
        self._listened: set[str] = set()
        self._listener: Connection | None = None
        self._publisher: Connection | None = None
        self._publishing = asyncio.Lock()
        self._backoff = Backoff()

    async def connect(self) -> None:
        """Do nothing: connections are made when they are needed, so that a server that is away is no special case."""

    async def disconnect(self) -> None:
        """Close both connections."""
        listener, self._listener = self._listener, None
        publisher, self._publisher = self._publisher, None
        for connection in (listener, publisher):
            if connection is not None:
                await _close(connection)

    # Broadcaster loses its books where these two are cancelled or fail, so neither waits for anything.
    async def subscribe(self, group: str) -> None:
        """Listen to a channel from the next turn on, at which its subscriber is told RESYNC."""
        self._channels.add(group)
        self._stir.set()

    async def unsubscribe(self, group: str) -> None:
        """Hear no more of a channel."""
        self._channels.discard(group)

    async def publish(self, channel: str, message: Any) -> None:
        """Notify everybody who listens; raises what the connection or the server raised."""
        async with self._publishing:
            connection = self._publisher
            if connection is None or connection.is_closed():
                connection = await self._connect("saldo publish", synchronous_commit="off")
                self._publisher = connection
            try:
                await connection.execute(
                    "select pg_notify($1, $2)", channel, message, timeout=self._probe_seconds
                )
            except asyncpg.InvalidParameterValueError:
                raise
            except BaseException:
                # Nobody knows in which state it is, least of all after a cancellation.
                self._publisher = None
                connection.terminate()
                raise

    async def next_published(self) -> Event:
        """Return the next message, after as many breaks as it takes."""
        while not self._inbox:
            try:
                await self._listen()
            except _BREAKS as error:
                log.warning("the broadcast connection broke and is made anew", error=repr(error))
                metrics.BROADCAST_RECONNECTS.inc()
                self._abandon_listener()
                await self._backoff.pause()
        return self._inbox.popleft()

    async def _listen(self) -> None:
        """Return when something has stirred or a silence was found to be no break; raises what broke."""
        connection = self._listener
        if connection is None:
            connection = self._listener = await self._connect("saldo listen")
            connection.add_termination_listener(self._on_termination)
        self._stir.clear()
        for channel in self._channels - self._listened:
            async with asyncio.timeout(self._probe_seconds):
                await connection.add_listener(channel, self._on_notification)
            self._listened.add(channel)
            self._put(channel, RESYNC)
            self._backoff.reset()
        if connection.is_closed():
            raise ConnectionResetError("the server has ended the connection")
        await self._wait_or_probe(connection)

    async def _wait_or_probe(self, connection: Connection) -> None:
        """Wait for a message; after a silence ask, because a half-open connection never says that it is lost."""
        try:
            async with asyncio.timeout(self._probe_seconds):
                await self._stir.wait()
        except TimeoutError:
            await connection.execute("select 1", timeout=self._probe_seconds)

    def _on_notification(
        self, _connection: object, _process_id: int, channel: str, payload: object
    ) -> None:
        if channel in self._channels:
            self._put(channel, str(payload))

    def _on_termination(self, _connection: object) -> None:
        self._stir.set()

    def _put(self, channel: str, message: str) -> None:
        self._inbox.append(Event(channel, message))
        if len(self._inbox) > self._inbox_max:
            self._inbox.clear()
            self._inbox.extend(Event(each, RESYNC) for each in self._channels)
        self._stir.set()

    def _abandon_listener(self) -> None:
        self._listened.clear()
        connection, self._listener = self._listener, None
        if connection is not None:
            connection.terminate()

    async def _connect(self, application_name: str, **server_settings: str) -> Connection:
        return await asyncpg.connect(
            self._url,
            timeout=_CONNECT_SECONDS,
            server_settings={"application_name": application_name, **server_settings},
        )


async def _close(connection: Connection) -> None:
    """Say good-bye where the server listens, and end the connection in any case."""
    with contextlib.suppress(*_BREAKS):
        await connection.close(timeout=_FAREWELL_SECONDS)

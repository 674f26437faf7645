"""The process's one link to the others: a Broadcast that is supervised, and made anew when it falls silent.

Broadcaster can go deaf without a word: its reader dies of an exception that nobody sees, a redis connection is lost, a
pooler swallows a LISTEN. So the link speaks to itself: it publishes a pulse and expects to hear one, its own or another
process's. Where its reader dies, or no pulse is heard for three periods, the Broadcast is torn down and another one is
opened, and every receiver is told RESYNC.

Broadcaster's queues have no bound. Here they are read by nothing but receivers that neither wait nor do I/O, so that
whatever arrives is taken out in the same turn of the event loop.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog

from app import metrics
from app.relay.broadcast import BROKER_ERRORS, WatchedBroadcast
from app.relay.messages import RESYNC
from app.relay.retry import Backoff, jittered

log = structlog.get_logger(__name__)

_PULSE_CHANNEL: Final = "saldo_pulse"
_PULSES_MISSED_MAX: Final = 3
_CLOSE_SECONDS: Final = 0.8
_CONNECT_SECONDS: Final = 5.0


class BroadcastUnavailableError(Exception):
    """The broker is away, refuses or doesn't answer in time; whether the message went out is unknown."""


class BroadcastSilentError(Exception):
    """No pulse was heard for so long that the Broadcast must be deaf."""


class BroadcastLink:
    """Publishes and receives for a whole process; run `run()` in a task."""

    def __init__(
        self,
        open_broadcast: Callable[[], WatchedBroadcast],
        *,
        pulse_seconds: float = 5.0,
        publish_timeout_seconds: float = 2.0,
    ) -> None:
        """Take what opens a Broadcast; it is called again each time the last one had to be torn down."""
        self._open_broadcast = open_broadcast
        self._pulse_seconds = pulse_seconds
        self._publish_timeout_seconds = publish_timeout_seconds
        self._receivers: dict[str, Callable[[str], None]] = {}
        self._broadcast: WatchedBroadcast | None = None
        self._heard_at = 0.0
        """When a message last came in, by the loop's clock."""

    def listen(self, channel: str, receive: Callable[[str], None]) -> None:
        """Have `receive` called with each message of a channel, and with RESYNC after any break.

        It must return at once. Call this before `run()`; a channel has one receiver.
        """
        self._receivers[channel] = receive

    async def publish(self, channel: str, message: str) -> None:
        """Send a message to every process; raises BroadcastUnavailableError."""
        broadcast = self._broadcast
        if broadcast is None:
            raise BroadcastUnavailableError
        try:
            async with asyncio.timeout(self._publish_timeout_seconds):
                await broadcast.publish(channel, message)
        except BROKER_ERRORS as error:
            raise BroadcastUnavailableError from error

    async def run(self) -> None:
        """Keep one Broadcast open until cancelled."""
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while True:
            opened_at = loop.time()
            try:
                await self._serve()
            except* (BroadcastSilentError, *BROKER_ERRORS) as errors:
                log.warning(
                    "the broadcast is torn down and opened anew",
                    errors=[repr(e) for e in errors.exceptions],
                )
            except* Exception:
                log.exception("the broadcast failed and is opened anew")
            metrics.BROADCAST_RECONNECTS.inc()
            if self._heard_at > opened_at:
                backoff.reset()
            await backoff.pause()

    async def _serve(self) -> None:
        """Use one Broadcast for as long as it lives; always ends by raising what it died of."""
        broadcast = self._open_broadcast()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await broadcast.connect()
            self._broadcast = broadcast
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_raise_when_ended(broadcast))
                tasks.create_task(self._read(broadcast, _PULSE_CHANNEL, lambda _: None))
                for channel, receive in self._receivers.items():
                    tasks.create_task(self._read(broadcast, channel, receive))
                tasks.create_task(self._pulse())
        finally:
            self._broadcast = None
            with contextlib.suppress(*BROKER_ERRORS):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await broadcast.disconnect()

    async def _read(
        self, broadcast: WatchedBroadcast, channel: str, receive: Callable[[str], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        queue = await broadcast.open_channel(channel)
        receive(RESYNC)
        while True:
            event = await queue.get()
            if event is None:
                continue
            if event.message != RESYNC:
                self._heard_at = loop.time()
            receive(event.message)

    async def _pulse(self) -> None:
        """Speak, and raise BroadcastSilentError when nothing has been heard for too long."""
        loop = asyncio.get_running_loop()
        opened_at = loop.time()
        while (
            loop.time() - max(opened_at, self._heard_at) < _PULSES_MISSED_MAX * self._pulse_seconds
        ):
            # A pulse that can't be sent is one that isn't heard.
            with contextlib.suppress(BroadcastUnavailableError):
                await self.publish(_PULSE_CHANNEL, "")
            await asyncio.sleep(jittered(self._pulse_seconds))
        raise BroadcastSilentError


async def _raise_when_ended(broadcast: WatchedBroadcast) -> None:
    await broadcast.ended()
    raise BroadcastSilentError

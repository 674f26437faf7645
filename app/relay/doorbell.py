"""Waking relays of other processes, for a server that has none of its own.

Ringing costs a posting nothing: it sets a flag. However many postings ring, the bell is heard by the relays at most once
in the pause; a ring that is lost costs them one poll.
"""

import asyncio

from app.relay.link import BroadcastLink, BroadcastUnavailableError
from app.relay.messages import DOORBELL_CHANNEL


class Doorbell:
    """Tells relays elsewhere that the outbox isn't empty; run `run()` in a task."""

    def __init__(self, link: BroadcastLink, *, pause_seconds: float = 0.01) -> None:
        """Ring at most once in `pause_seconds`."""
        self._link = link
        self._pause_seconds = pause_seconds
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Have relays woken soon; returns at once."""
        self._rung.set()

    async def run(self) -> None:
        """Publish what was rung until cancelled."""
        while True:
            await self._rung.wait()
            self._rung.clear()
            try:
                await self._link.publish(DOORBELL_CHANNEL, "")
            except BroadcastUnavailableError:
                # Nothing is lost, relays poll; the link itself reports that its broker is away.
                self._rung.clear()
            await asyncio.sleep(self._pause_seconds)

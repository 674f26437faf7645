"""uvicorn's HTTP protocol with a bound on what comes before a request's body: its size, and the time that it may take.

Without them one socket that sends header after header, or nothing more, takes memory for as long as it likes.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX: Final = 65_536
HEAD_SECONDS_MAX: Final = 10.0


class BoundedHttpProtocol(HttpToolsProtocol):
    """Answers 400 and closes where the head of a request is too large, and closes where it takes too long."""

    _in_head = False
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Take what has come, and count it where the head that it belongs to isn't complete yet."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._leave_head()
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """Begin the head of a request; between requests nothing is counted, and uvicorn's own timer runs."""
        self._in_head = True
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End the head: what follows is bounded by whoever reads the body."""
        self._leave_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave no timer behind."""
        self._leave_head()
        super().connection_lost(exc)

    def _leave_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

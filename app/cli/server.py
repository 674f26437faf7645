"""One server process: its listening socket, uvicorn's settings, and the order in which it stops."""

import contextlib
import errno
import gc
import socket
from collections.abc import Callable, Generator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from app.cli.errors import CommandError
from app.cli.http_protocol import BoundedHttpProtocol

_BACKLOG: Final = 2_048
_FRAME_BYTES_MAX: Final = 65_536
"""Largest WebSocket message that a client may send; an operation and its variables fit many times."""

_PING_SECONDS: Final = 20.0
_UNACKNOWLEDGED_MS: Final = 20_000
"""How long the kernel waits for a peer that takes nothing. Without it a client that stops reading is never found out:
uvicorn's close waits for the unread buffer."""

_KEEP_ALIVE_SECONDS: Final = 75
"""Longer than the minute after which common load balancers let a connection go, so that the server isn't the first."""

_REQUESTS_SHARE: Final = 0.8
"""What requests may use of the time to stop; the rest is for the posting queue, the relay and the pools."""


def bind(host: str, port: int) -> socket.socket:
    """Take a TCP port without listening yet; raises CommandError where it is taken or not to be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CommandError(f"There is no address {host}: {error.strerror}") from error
    # `localhost` may be both; a person who types it expects the older one to work.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by accepted connections; other systems than Linux lack it.
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def listen(listener: socket.socket) -> None:
    """Let connections queue up; raises CommandError where another server has begun to listen since `bind`."""
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        raise _cannot_listen(*_host_and_port(listener), error) from error


def address_for_people(listener: socket.socket) -> str:
    """Write the URL under which this machine reaches the socket."""
    host, port = _host_and_port(listener)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - recognised, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _host_and_port(listener: socket.socket) -> tuple[str, int]:
    host, port, *_ = listener.getsockname()
    return host, port


def _cannot_listen(host: str, port: int, error: OSError) -> CommandError:
    if error.errno == errno.EADDRNOTAVAIL:
        return CommandError(
            f"This machine doesn't have the address {host}. Choose another one in SALDO_HOST, or with --host."
        )
    return CommandError(
        f"Port {port} of {host} can't be had ({error.strerror}). Choose another one in SALDO_PORT, or with --port."
    )


class HttpServer(uvicorn.Server):
    """Serves one application on one listening socket until `stop` is called."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        grace_seconds: float,
        ready: Callable[[], None],
        must_stop: Callable[[], bool],
        leaving: Callable[[], None],
    ) -> None:
        """Call `ready` once requests are answered, and `leaving` before the first connection is closed.

        `must_stop` is asked several times a second; where it says yes, the server stops in order.
        """
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                http=BoundedHttpProtocol,
                ws="websockets-sansio",
                ws_max_size=_FRAME_BYTES_MAX,
                ws_ping_interval=_PING_SECONDS,
                ws_ping_timeout=_PING_SECONDS,
                ws_per_message_deflate=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=int(grace_seconds * _REQUESTS_SHARE),
                backlog=_BACKLOG,
                server_header=False,
                proxy_headers=False,
                access_log=False,
                log_config=None,
                workers=1,
            )
        )
        self._ready = ready
        self._must_stop = must_stop
        self._leaving = leaving

    def stop(self) -> None:
        """Stop in order; the second call no longer waits for requests under way."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, with all that has been loaded so far out of the garbage collector's sight.

        Modules and the schema are 120,000 objects that stay for ever. Looking through them for garbage would stop every
        request for about 30 ms again and again.
        """
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Tell uvicorn's main loop whether to end."""
        return await super().on_tick(counter) or self._must_stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that the process is leaving, then let uvicorn close sockets and wait for requests."""
        self._leaving()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to the command; uvicorn would end the process by the signal, not with status 0."""
        yield

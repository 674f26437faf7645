"""`saldo serve`: from settings to a running server of one process or several, and back, in order.

Order of the start: the port is taken, so that a mistake is said before anything else happens; the database is found or
started; the schema is brought up to date or checked; then requests are served. The stop is the same in reverse, and the
embedded PostgreSQL ends last, if nobody else uses it.
"""

import asyncio
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Final

from app.cli.database import database_of, prepare_schema
from app.cli.server import HttpServer, address_for_people, bind, listen
from app.cli.signals import ignore, interrupt, on_stop_signal
from app.cli.welcome import STOPPING, farewell, say, welcome
from app.cli.workers import READY, Workers
from app.logs import configure_logging
from app.main import create_application
from app.settings import Settings
from app.web.prometheus import Siblings

_OVERTIME_SECONDS: Final = 3.0
"""How long after its time to stop a worker without a parent may live."""


def serve(settings: Settings) -> bool:
    """Serve until a stop signal comes; tells whether all ended in order.

    Raises CommandError, EmbeddedPostgresError and UnsupportedServerError.
    """
    on_stop_signal(interrupt)
    configure_logging(settings.log_level)
    try:
        with bind(settings.host, settings.port) as listener, database_of(settings) as complete:
            prepare_schema(complete)
            listen(listener)

            def ready() -> None:
                sys.stdout.write(welcome(complete, address_for_people(listener)))
                sys.stdout.flush()

            if settings.workers == 1:
                all_is_well = _serve_here(complete, listener, ready, siblings=None)
            else:
                all_is_well = _serve_with_workers(complete, listener, ready)
    except KeyboardInterrupt:
        # Asked to stop before anything was served.
        all_is_well = True
    say(farewell(settings))
    return all_is_well


def serve_as_worker(settings: Settings, listener: socket.socket, siblings: Siblings) -> bool:
    """Serve on a socket of the parent's until a stop signal comes or the parent ends; tells whether all ended in order."""
    on_stop_signal(interrupt)
    configure_logging(settings.log_level)

    def ready() -> None:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()

    try:
        # Its own use of the embedded PostgreSQL: should the parent be killed, the last worker stops it.
        with listener, database_of(settings) as complete:
            return _serve_here(complete, listener, ready, siblings=siblings)
    except KeyboardInterrupt:
        return True


def _serve_here(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[], None],
    *,
    siblings: Siblings | None,
) -> bool:
    application = create_application(settings, siblings=siblings)

    def leaving() -> None:
        application.leave()
        if siblings is None:
            say(STOPPING)

    server = HttpServer(
        application.asgi,
        grace_seconds=settings.shutdown_grace_seconds,
        ready=ready,
        must_stop=lambda: application.failed,
        leaving=leaving,
    )
    on_stop_signal(server.stop)
    if siblings is not None:
        _stop_with_parent(server, settings.shutdown_grace_seconds + _OVERTIME_SECONDS)
    try:
        server.run(sockets=[listener])
    finally:
        on_stop_signal(ignore)
    return not application.failed


def _serve_with_workers(
    settings: Settings, listener: socket.socket, ready: Callable[[], None]
) -> bool:
    with tempfile.TemporaryDirectory(prefix="saldo-workers-") as directory:

        def command(number: int) -> Sequence[str]:
            arguments = (str(listener.fileno()), str(number), directory)
            return (sys.executable, "-m", "app.cli", "worker", *arguments)

        async def supervise() -> bool:
            workers = Workers(
                command,
                settings.workers,
                listener,
                grace_seconds=settings.shutdown_grace_seconds,
                ready=ready,
                leaving=lambda: say(STOPPING),
            )
            try:
                return await workers.run()
            finally:
                on_stop_signal(ignore)

        return asyncio.run(supervise())


def _stop_with_parent(server: HttpServer, limit_seconds: float) -> None:
    """Stop when standard input ends, which the parent holds open for as long as it lives.

    A thread waits for it, so that a process whose event loop stands still ends as well.
    """

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        server.should_exit = True
        threading.Event().wait(limit_seconds)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()

"""`saldo relay`: a process that delivers events and serves nothing."""

import asyncio
import sys

from app.cli.database import database_of, prepare_schema
from app.cli.signals import STOP_SIGNALS, ignore, interrupt, on_stop_signal
from app.logs import configure_logging
from app.main import run_relay
from app.settings import Settings


def relay(settings: Settings) -> bool:
    """Deliver events until a stop signal comes; tells whether all ended in order.

    Raises CommandError, EmbeddedPostgresError and UnsupportedServerError.
    """
    on_stop_signal(interrupt)
    configure_logging(settings.log_level)
    try:
        with database_of(settings) as complete:
            prepare_schema(complete)
            sys.stdout.write("Saldo delivers events until it is asked to stop.\n")
            sys.stdout.flush()
            return asyncio.run(_run(complete))
    except KeyboardInterrupt:
        # Asked to stop before anything was delivered.
        return True


async def _run(settings: Settings) -> bool:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        return await run_relay(settings, stop)
    finally:
        on_stop_signal(ignore)

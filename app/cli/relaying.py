"""`saldo relay`: a process that delivers events and serves nothing."""

import sys
from functools import partial

from app.cli.database import database_of, prepare_schema
from app.cli.signals import interrupt, on_stop_signal, run_until_stopped
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
            return run_until_stopped(partial(run_relay, complete))
    except KeyboardInterrupt:
        # Asked to stop before anything was delivered.
        return True

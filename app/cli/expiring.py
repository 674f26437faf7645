"""`saldo expire-holds`: gives back what was set aside for longer than was asked for."""

import asyncio
import sys
from functools import partial

from app.cli.database import database_of, name_new_ledger, prepare_schema
from app.cli.errors import CommandError
from app.cli.signals import interrupt, on_stop_signal, run_until_stopped
from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.logs import configure_logging
from app.main import running_books
from app.settings import Settings


def expire_holds(settings: Settings) -> bool:
    """Let holds expire until none is due, and print how many; tells whether it got that far.

    Raises CommandError, EmbeddedPostgresError and UnsupportedServerError.
    """
    on_stop_signal(interrupt)
    configure_logging(settings.log_level)
    try:
        name_new_ledger(settings)
        with database_of(settings) as complete:
            prepare_schema(complete)
            return run_until_stopped(partial(_run, complete))
    except KeyboardInterrupt:
        raise CommandError("Stopped before any hold expired.") from None
    except LedgerUnavailableError as error:
        raise CommandError(
            "The database didn't answer in time. Run the command again: it goes on from there."
        ) from error
    except LedgerIncidentError as error:
        raise CommandError(
            "The database refused to let a hold expire; the log above says which and why."
        ) from error


async def _run(settings: Settings, stop: asyncio.Event) -> bool:
    expired = 0
    async with running_books(settings) as books:
        while not stop.is_set():
            count = await books.upkeep.expire_holds()
            if count == 0:
                break
            expired += count
    sys.stdout.write(f"Holds expired: {expired}.\n")
    if stop.is_set():
        raise CommandError("Stopped; more holds may be due.")
    return True

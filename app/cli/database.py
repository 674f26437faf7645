"""Which PostgreSQL a command works with, and whether its schema is what this release needs."""

import asyncio
import contextlib
import sys
from collections.abc import Generator
from typing import Final

import structlog
from alembic.script import ScriptDirectory
from alembic.util import CommandError as UnknownRevisionError
from sqlalchemy.exc import DBAPIError

from app.cli.errors import DATABASE_TROUBLE, CommandError, database_trouble
from app.database import (
    RUNTIME_ROLE,
    Database,
    DatabaseUnavailableError,
    check_server_version,
    sqlstate_of,
)
from app.embedded import OWNER, EmbeddedPostgres
from app.migrate import MIGRATIONS, upgrade
from app.settings import Settings
from app.web.health import schema_revision

log = structlog.get_logger(__name__)

_NEVER_MIGRATED: Final = frozenset({"22023", "42P01"})
"""SQLSTATEs for a role or a table that doesn't exist: migrations make both."""

_NO_RIGHT: Final = "42501"


def name_new_ledger(settings: Settings) -> None:
    """Say on standard error where a ledger begins that didn't exist, in case its folder was meant to be another."""
    if settings.database_url is None and not settings.data_dir.exists():
        sys.stderr.write(
            f"No ledger is here yet; a new one begins in {settings.data_dir.resolve()}\n"
        )


@contextlib.contextmanager
def database_of(settings: Settings) -> Generator[Settings]:
    """Yield the settings with the addresses filled in; the embedded PostgreSQL runs for as long as the block lasts.

    Raises EmbeddedPostgresError.
    """
    if settings.database_url is not None:
        yield settings
        return
    with EmbeddedPostgres(settings.data_dir) as postgres:
        yield settings.model_copy(
            update={
                "database_url": postgres.url(),
                "owner_database_url": postgres.url(role=OWNER),
            }
        )


def bring_up_to_date(settings: Settings) -> None:
    """Apply the migrations that are missing; raises CommandError and UnsupportedServerError."""
    url = settings.migration_database_url
    if url is None:
        raise CommandError("No database is named in SALDO_DATABASE_URL.")
    try:
        upgrade(url)
    except UnknownRevisionError as error:
        raise CommandError(
            "The database has been migrated by a newer release of Saldo; this one has nothing to do there."
        ) from error
    except DATABASE_TROUBLE as error:
        raise database_trouble(error) from error


def prepare_schema(settings: Settings) -> None:
    """Migrate where the schema's owner is known, else see to it that somebody has.

    Raises CommandError and UnsupportedServerError.
    """
    if settings.owner_database_url is not None:
        bring_up_to_date(settings)
        return
    revision = asyncio.run(_applied_revision(settings))
    if revision is None or _is_behind(revision):
        raise CommandError("The database's schema isn't up to date. Run: saldo migrate")


async def _applied_revision(settings: Settings) -> str | None:
    """Read the database's revision as the server's role, which proves that the login may take that role."""
    if settings.database_url is None:
        raise CommandError("No database is named in SALDO_DATABASE_URL.")
    database = Database(settings.database_url, pool_size=1, pool_timeout_ms=5_000)
    try:
        async with database.read_only() as connection:
            await check_server_version(connection)
            return await schema_revision(connection)
    except (DatabaseUnavailableError, DBAPIError, OSError) as error:
        sqlstate = _sqlstate(error)
        if sqlstate in _NEVER_MIGRATED:
            return None
        if sqlstate == _NO_RIGHT:
            raise CommandError(
                f"The login of SALDO_DATABASE_URL may not work as {RUNTIME_ROLE}. "
                f"As a superuser, run: grant {RUNTIME_ROLE} to <that login>"
            ) from error
        raise database_trouble(error) from error
    finally:
        await database.close()


def _sqlstate(error: BaseException) -> str | None:
    if isinstance(error, DatabaseUnavailableError):
        error = error.__cause__ or error
    if isinstance(error, DBAPIError):
        return sqlstate_of(error)
    return getattr(error, "sqlstate", None)


def _is_behind(revision: str) -> bool:
    """Tell whether migrations are missing; a revision that this release doesn't know is a newer one, which it can serve."""
    scripts = ScriptDirectory(str(MIGRATIONS))
    if revision == scripts.get_current_head():
        return False
    try:
        scripts.get_revision(revision)
    except UnknownRevisionError:
        log.warning("the database's schema is newer than this release", revision=revision)
        return False
    return True

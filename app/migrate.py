"""Brings a database to the newest schema with Alembic, as the schema's owner.

One migrator at a time: an advisory lock makes a second one wait for the first and then find nothing to do.
"""

import asyncio
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.database import check_server_version, sqlalchemy_url

MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"
_ADVISORY_LOCK: Final = 0x5A1D0
"""Any fixed number would do; it only has to differ from the locks of other programs on the same database."""


def upgrade(owner_url: str) -> None:
    """Apply every migration that is missing; raises UnsupportedServerError for a PostgreSQL older than 15."""
    asyncio.run(_upgrade(owner_url))


async def _upgrade(owner_url: str) -> None:
    engine = create_async_engine(sqlalchemy_url(owner_url))
    try:
        async with engine.connect() as connection:
            await check_server_version(connection)
            # Held by the session, not by a transaction: each revision commits on its own.
            await connection.execute(
                text("select pg_advisory_lock(:lock)"), {"lock": _ADVISORY_LOCK}
            )
            # A change of a table that waits for a long reader would have every posting wait behind it: it is better
            # refused, and tried again at a quieter moment.
            await connection.execute(text("set lock_timeout = '4s'"))
            await connection.commit()
            await connection.run_sync(_apply)
            await connection.commit()
    finally:
        await engine.dispose()


def _apply(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

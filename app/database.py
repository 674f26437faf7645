"""The only doors to PostgreSQL: a bounded pool, `transaction()` and `read_only()`, and the loader of named SQL.

Every connection works as the role `saldo_runtime`, whoever logged in, so that no right of a mighty login is ever used
by the server. What the database says of a failure is read from its SQLSTATE and constraint name, never from its text.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast

import asyncpg
import orjson
from sqlalchemy import TextClause, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

OLDEST_SERVER: Final = 150_000
"""PostgreSQL 15, as `server_version_num` counts it."""

CONNECT_SECONDS: Final = 2.0

RUNTIME_ROLE: Final = "saldo_runtime"

_PROBES_ONLY: Final = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""Planner settings for work that is nothing but index probes. A session keeps the plans that it makes first, those of
foreign-key checks included; one made while the tables were still empty would read them from end to end for ever."""

_SERIALIZATION_FAILURE: Final = "40001"
_DEADLOCK_DETECTED: Final = "40P01"
_LOCK_NOT_AVAILABLE: Final = "55P03"
_UNAVAILABLE_CLASSES: Final = frozenset({"08", "53", "57"})
"""The first two characters of SQLSTATEs that speak of a broken connection, of too few resources, or of an operator that
stops the server or a statement."""

_NAME: Final = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_UNSEEN_PARAMETER: Final = re.compile(r":[a-z_]+::")


DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # What the driver says where the server went away between two messages and it no longer knows where it stands.
    asyncpg.InternalClientError,
    OSError,
)
"""Everything that the driver itself raises; `is_unavailable` tells which of them may pass."""


class UnsupportedServerError(Exception):
    """The server is older than PostgreSQL 15; carries its version number."""


class DatabaseUnavailableError(Exception):
    """No connection could be had in time, or the server went away, has no room or no time.

    What became of a transaction that was being committed at that moment is unknown.
    """


class StatementFileError(Exception):
    """A `.sql` file is written in a way that would fail only at run time."""


def sqlalchemy_url(url: str) -> str:
    """Turn postgres:// or postgresql:// into what SQLAlchemy needs to speak to it through asyncpg."""
    return make_url(url).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)


def load_statements(file: Path) -> Mapping[str, TextClause]:
    """Read the statements of a `.sql` file, each under a line `-- name: words_with_underscores`.

    Raises StatementFileError where a parameter is cast with `::`, which SQLAlchemy would not see as a parameter at all.
    """
    parts = _NAME.split(file.read_text(encoding="utf-8"))
    if _UNSEEN_PARAMETER.search("".join(parts[1:])):
        raise StatementFileError(
            f"{file.name} casts a parameter with ::, write cast(:name as type)"
        )
    return {
        name: text(statement.strip().removesuffix(";"))
        for name, statement in zip(parts[1::2], parts[2::2], strict=True)
    }


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE that PostgreSQL gave, or None where the connection broke before it could."""
    return cast("str | None", getattr(_driver_error(error), "sqlstate", None))


def constraint_of(error: BaseException) -> str | None:
    """Return the name of the constraint that refused, if one did."""
    return cast("str | None", getattr(_driver_error(error), "constraint_name", None))


def is_contention(error: BaseException) -> bool:
    """Tell whether the whole transaction may simply be tried again: a serialization failure or a deadlock."""
    return sqlstate_of(error) in {_SERIALIZATION_FAILURE, _DEADLOCK_DETECTED}


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the server can't be reached, went away, or has no room or no time; such an error may pass."""
    cause = _driver_error(error)
    if isinstance(cause, OSError | asyncpg.InternalClientError) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    ):
        return True
    if isinstance(cause, asyncpg.InterfaceError):
        # A closed connection; but the same family holds arguments that can't be encoded, which are nobody's passing trouble.
        return not isinstance(cause, ValueError)
    sqlstate = sqlstate_of(error) or ""
    return sqlstate[:2] in _UNAVAILABLE_CLASSES or sqlstate == _LOCK_NOT_AVAILABLE


def session_settings(
    *, application_name: str, statement_timeout_ms: int, probes_only: bool
) -> dict[str, str]:
    """Return the settings that every session of Saldo's works with, whatever client library opened it."""
    return {
        "application_name": application_name,
        "role": RUNTIME_ROLE,
        # Postings and the relay rely on each statement seeing what was committed before it.
        "default_transaction_isolation": "read committed",
        "statement_timeout": str(statement_timeout_ms),
        # A posting waits for row locks of other postings, each of which lasts milliseconds.
        "lock_timeout": str(statement_timeout_ms),
        "idle_in_transaction_session_timeout": "10000",
        "jit": "off",
        **(_PROBES_ONLY if probes_only else {}),
    }


def _driver_error(error: BaseException) -> BaseException | None:
    """Find asyncpg's own error beneath those that SQLAlchemy wraps it in."""
    if not isinstance(error, DBAPIError):
        return error
    return error.orig.__cause__ or error.orig if error.orig is not None else None


def _encode_json(value: object) -> str:
    return orjson.dumps(value).decode()


class Database:
    """A bounded pool of connections to one PostgreSQL, and the two ways to use them."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pool_timeout_ms: int = 500,
        statement_timeout_ms: int = 5_000,
        application_name: str = "saldo",
        probes_only: bool = False,
    ) -> None:
        """Open nothing yet; connections are made when they are first needed.

        `probes_only` is for a pool whose every statement looks rows up by index, such as the posting engine's.
        """
        self.engine: AsyncEngine = create_async_engine(
            sqlalchemy_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout_ms / 1000,
            # Amounts, keys and names stay out of messages and logs.
            hide_parameters=True,
            json_serializer=_encode_json,
            json_deserializer=orjson.loads,
            connect_args={
                "timeout": CONNECT_SECONDS,
                # The server ends a statement that runs too long; this ends the wait for a server that is frozen.
                "command_timeout": statement_timeout_ms / 1000 + 1,
                "server_settings": session_settings(
                    application_name=application_name,
                    statement_timeout_ms=statement_timeout_ms,
                    probes_only=probes_only,
                ),
            },
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """Open a read-write transaction; leaving the block commits, an exception rolls back.

        Raises DatabaseUnavailableError where no connection can be had within the pool's timeout or it breaks.
        """
        async with self._connection() as connection, connection.begin():
            yield connection

    @asynccontextmanager
    async def read_only(self) -> AsyncGenerator[AsyncConnection]:
        """Lend a connection for single reading statements, each with the newest committed state.

        It is in autocommit mode: no transaction stays open and no round trip is spent on one.
        Raises DatabaseUnavailableError where no connection can be had within the pool's timeout or it breaks.
        """
        async with self._connection() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[AsyncConnection]:
        try:
            connection = await self.engine.connect()
        except (PoolTimeoutError, DBAPIError, *DRIVER_ERRORS) as error:
            raise DatabaseUnavailableError from error
        try:
            yield connection
        except asyncpg.InternalClientError as error:
            # SQLAlchemy doesn't know this family, so it would lend the connection to the next one.
            await connection.invalidate()
            raise DatabaseUnavailableError from error
        except (DBAPIError, OSError) as error:
            if is_unavailable(error):
                raise DatabaseUnavailableError from error
            raise
        finally:
            await connection.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


async def check_server_version(connection: AsyncConnection) -> None:
    """Raise UnsupportedServerError unless the server is PostgreSQL 15 or later."""
    number = int((await connection.execute(text("show server_version_num"))).scalar_one())
    if number < OLDEST_SERVER:
        raise UnsupportedServerError(
            f"PostgreSQL {number // 10_000}.{number % 10_000} is too old; Saldo needs PostgreSQL 15 or later"
        )

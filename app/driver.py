"""Connections of the driver itself, for the one path where SQLAlchemy's share of the time would exceed the work's own.

A posting is three short statements. Through SQLAlchemy a batch of one costs this process about 2 ms of processor time,
through asyncpg about a third of that; with few requests in flight, and so with small batches, that is most of a server's work.
Whoever reads for people, opens accounts or delivers events uses `database`, where a few hundred microseconds buy uniform
results.

Each transaction has a connection for itself, and so has whoever looks something up for one; those that are idle are kept.
How many there are at most is up to the caller.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import asyncpg
import orjson

from app.database import (
    CONNECT_SECONDS,
    DRIVER_ERRORS,
    DatabaseUnavailableError,
    is_unavailable,
    load_statements,
    session_settings,
)

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_COMMENT: Final = re.compile(r"^--.*$", re.MULTILINE)
_PARAMETER: Final = re.compile(r":([a-z_]+)")


@dataclass(frozen=True, slots=True)
class DriverStatement:
    """A named statement with its parameters numbered, as the driver wants them."""

    sql: str
    parameters: tuple[str, ...]

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Put the values in the order of the parameters."""
        return tuple(values[name] for name in self.parameters)


def load_driver_statements(file: Path) -> Mapping[str, DriverStatement]:
    """Read the statements of a `.sql` file as `database.load_statements` does, for use by the driver itself."""
    return {name: _numbered(statement.text) for name, statement in load_statements(file).items()}


class DriverConnections:
    """Connections to one PostgreSQL, lent for one transaction or a few statements each."""

    def __init__(
        self, url: str, *, statement_timeout_ms: int = 5_000, application_name: str = "saldo"
    ) -> None:
        """Open nothing yet; connections are made when they are first needed."""
        self._url = url
        self._statement_timeout_ms = statement_timeout_ms
        self._application_name = application_name
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """Open a read-write transaction; leaving the block commits, an exception rolls back.

        Raises DatabaseUnavailableError where no connection can be had or it breaks; what became of a transaction that
        was being committed at that moment is then unknown. What else the driver raises comes out as it is.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """Lend a connection for single statements, each with the newest committed state; errors as for a transaction."""
        connection = await self._take()
        try:
            yield connection
        except DRIVER_ERRORS as error:
            if not is_unavailable(error):
                self._give_back(connection)
                raise
            # Its state is in doubt, and so is that of those that have lain idle since.
            connection.terminate()
            self._terminate_idle()
            raise DatabaseUnavailableError from error
        except Exception:
            self._give_back(connection)
            raise
        except BaseException:
            # Cancelled in the middle of something: whatever the server was doing, it isn't to go on.
            connection.terminate()
            raise
        else:
            self._give_back(connection)

    async def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            await self._idle.pop().close()

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await self._connect()
        except DRIVER_ERRORS as error:
            raise DatabaseUnavailableError from error

    async def _connect(self) -> Connection:
        connection: Connection = await asyncpg.connect(
            self._url,
            timeout=CONNECT_SECONDS,
            # The server ends a statement that runs too long; this ends the wait for a server that is frozen.
            command_timeout=self._statement_timeout_ms / 1000 + 1,
            server_settings=session_settings(
                application_name=self._application_name,
                statement_timeout_ms=self._statement_timeout_ms,
                probes_only=True,
            ),
        )
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=orjson.loads
        )
        return connection

    def _give_back(self, connection: Connection) -> None:
        if not connection.is_closed():
            self._idle.append(connection)

    def _terminate_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()


def _numbered(statement: str) -> DriverStatement:
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

    sql = _PARAMETER.sub(number, _COMMENT.sub("", statement))
    return DriverStatement(sql, tuple(numbers))


def _encode_json(value: object) -> str:
    return orjson.dumps(value).decode()

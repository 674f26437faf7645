"""Databases of tests: one server for the session, one migrated template, a clone of it per test."""

import contextlib
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import asyncpg

from app.embedded import OWNER, RUNTIME, SUPERUSER, EmbeddedPostgres, RunningPostgres

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class TestDatabase:
    """One test's own database, migrated and empty, by the roles that may reach it."""

    __test__: ClassVar[bool] = False  # Its name would otherwise make pytest collect it.

    name: str
    runtime_url: str
    owner_url: str
    superuser_url: str

    @classmethod
    def of(cls, server: RunningPostgres, name: str) -> "TestDatabase":
        return cls(
            name=name,
            runtime_url=server.url(name, RUNTIME),
            owner_url=server.url(name, OWNER),
            superuser_url=server.url(name, SUPERUSER),
        )


@contextlib.contextmanager
def temporary_server(*, fsync: bool) -> Generator[RunningPostgres]:
    """Run a server in a directory with a short name, and remove it with all its data afterwards.

    Without `fsync` it is fast, and still survives the kill of any process, though not the loss of the machine.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="saldo-"))
    try:
        with EmbeddedPostgres(data_dir, fsync=fsync) as server:
            yield server
    finally:
        shutil.rmtree(data_dir)


@contextlib.asynccontextmanager
async def connect(url: str) -> AsyncGenerator["asyncpg.Connection[asyncpg.Record]"]:
    """Connect as a test does it: beside the application's pool, and closed at the end."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        # A test may have ended the server or the database under it; the connection is closed either way.
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            await connection.close()


async def scalar(url: str, query: str, *arguments: object) -> Any:
    """Ask one question on a connection of its own and return the first column of the first row."""
    async with connect(url) as connection:
        return await connection.fetchval(query, *arguments)

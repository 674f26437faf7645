"""Two questions that an orchestrator asks, which must not be mixed up.

`/healthz`: does the process still turn its event loop? It looks at nothing else, because restarting Saldo doesn't cure a
database that is away. `/readyz`: can it serve now? It asks the database over a connection of its own, so that a busy pool
doesn't make a working server look dead, and never waits long.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from app.database import Database, DatabaseUnavailableError, load_statements

log = structlog.get_logger(__name__)

PROBE_TIMEOUT_MS: Final = 1_000

_KEPT_SECONDS: Final = 0.5
"""How long an answer is given again, so that a flood of probes is one question to the database."""

_ATTEMPTS: Final = 2
"""The first one may find a connection that broke since the last probe."""

_STATEMENTS: Final = load_statements(Path(__file__).parent / "sql" / "health.sql")
_SCHEMA_REVISION: Final = _STATEMENTS["schema_revision"]


async def schema_revision(connection: AsyncConnection) -> str | None:
    """Read which migration was applied last; None for a database that none has reached."""
    return (await connection.execute(_SCHEMA_REVISION)).scalar_one_or_none()


class Readiness:
    """Whether this process can serve, asked at most once at a time."""

    def __init__(self, database: Database) -> None:
        """Take a pool of one connection that nobody else uses."""
        self._database = database
        self._asking = asyncio.Lock()
        self._ready = False
        self._asked_at = float("-inf")
        self._leaving = False

    def leave(self) -> None:
        """Answer no from now on: the process is stopping, and new work should go to others."""
        self._leaving = True

    async def ready(self) -> bool:
        """Tell whether the database answers."""
        if self._leaving:
            return False
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() - self._asked_at > _KEPT_SECONDS:
                ready = await self._ask()
                if ready != self._ready:
                    log.info("the database answers" if ready else "the database doesn't answer")
                self._ready = ready
                self._asked_at = loop.time()
        return self._ready and not self._leaving

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_MS / 1000):
                return await self._ask_again_where_it_broke()
        except TimeoutError:
            return False

    async def _ask_again_where_it_broke(self) -> bool:
        for _ in range(_ATTEMPTS):
            try:
                async with self._database.read_only() as connection:
                    await schema_revision(connection)
            except (DatabaseUnavailableError, DBAPIError, OSError):
                continue
            return True
        return False


def health_routes(readiness: Readiness) -> Sequence[BaseRoute]:
    """Serve `/healthz` and `/readyz`; both answer a word and nothing that a stranger could use."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(_request: Request) -> Response:
        if await readiness.ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready\n", status_code=503, headers={"retry-after": "1"})

    return (Route("/healthz", healthz), Route("/readyz", readyz))

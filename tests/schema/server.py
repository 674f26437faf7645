"""A whole server for one test: ledger, engine, relay, hub and the GraphQL doors, reached over real sockets."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import orjson
import websockets
from sqlalchemy import QueuePool
from starlette.applications import Starlette
from uvicorn import Config, Server

from app.database import Database
from app.driver import DriverConnections
from app.ledger.model import Account, Scope
from app.ledger.posting.engine import EngineLimits, PostingEngine
from app.ledger.reader import Reader
from app.ledger.reading.lookups import Lookups
from app.ledger.service import Ledger
from app.ledger.upkeep import Upkeep
from app.relay.broadcast import open_broadcast
from app.relay.drain import Relay
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from app.schema import Limits, Services, graphql_routes
from app.schema.ids import encode_account_id
from app.tokens import Tokens
from tests.support.ledger import PATIENT, RunningLedger, Wallet, contents, metric, new_id

SECRET = "a secret of at least thirty-two bytes"
SUBPROTOCOL = "graphql-transport-ws"
FEEDS = ("balanceChanged", "entryPosted")

JsonObject = dict[str, Any]


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


async def until(true: Callable[[], bool]) -> None:
    """Wait until something that nobody announces has become true."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is waited for lies in other libraries
            await asyncio.sleep(0.01)


class _QuietServer(Server):
    """A uvicorn that leaves the signals of the test run alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@dataclass(slots=True)
class Socket:
    """A WebSocket as a client has it."""

    connection: websockets.ClientConnection

    async def send(self, message: object) -> None:
        await self.connection.send(orjson.dumps(message).decode())

    async def receive(self) -> JsonObject:
        async with asyncio.timeout(10):
            return orjson.loads(await self.connection.recv())

    async def subscribe(self, query: str, operation: str = "1", /, **variables: Any) -> None:
        payload = {"query": query, "variables": variables}
        await self.send({"id": operation, "type": "subscribe", "payload": payload})

    async def next(self, operation: str = "1") -> JsonObject:
        """Receive the next result of an operation and return its data."""
        message = await self.receive()
        assert message["type"] == "next", message
        assert message["id"] == operation
        assert "errors" not in message["payload"], message
        return message["payload"]["data"]

    async def error(self, operation: str = "1") -> JsonObject:
        """Receive the end of an operation that failed and return its first error."""
        message = await self.receive()
        assert message["type"] == "error", message
        assert message["id"] == operation
        return message["payload"][0]

    async def closed(self) -> int:
        """Wait for the server to close, and return the code."""
        async with asyncio.timeout(10):
            await self.connection.wait_closed()
        assert self.connection.close_code is not None
        return self.connection.close_code


@dataclass(slots=True)
class ApiServer:
    """A server that runs, with short ways to do what most tests do."""

    books: RunningLedger
    hub: Hub
    tokens: Tokens
    http: httpx.AsyncClient
    port: int
    reads: Database
    limits: Limits = field(default_factory=Limits)

    @property
    def connections_in_use(self) -> int:
        """How many connections for reading are lent at this moment."""
        pool = self.reads.engine.pool
        assert isinstance(pool, QueuePool)
        return pool.checkedout()

    def token(self, subject: str = "alice", *scopes: Scope, lifetime_seconds: int = 3_600) -> str:
        """Issue a token, for WALLET unless told otherwise."""
        return self.tokens.issue(
            subject,
            frozenset(scopes or {Scope.WALLET}),
            now=now(),
            lifetime=timedelta(seconds=lifetime_seconds),
        )

    async def post(
        self,
        query: str,
        variables: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> httpx.Response:
        """Send an operation as the holder of the token, and return the whole answer."""
        authorization = {} if token is None else {"authorization": f"Bearer {token}"}
        return await self.http.post(
            "/graphql",
            json={"query": query, "variables": variables, **parameters},
            headers={**authorization, **(headers or {})},
        )

    async def ask(self, query: str, token: str | None = None, **variables: Any) -> JsonObject:
        """Send an operation, as alice unless told otherwise, and return its data; there must be no errors."""
        response = await self.post(query, variables, token=token or self.token())
        answer = response.json()
        assert response.status_code == 200, answer
        assert "errors" not in answer, answer
        return answer["data"]

    async def fail(self, query: str, token: str | None = None, **variables: Any) -> JsonObject:
        """Send an operation, as alice unless told otherwise, and return its first top-level error."""
        answer = (await self.post(query, variables, token=token or self.token())).json()
        return answer["errors"][0]

    async def booked(self) -> Mapping[str, list[str]]:
        """Read what is booked, to compare before and after; what the relay moves by itself is left out."""
        tables = await contents(self.books.url)
        return {name: rows for name, rows in tables.items() if name not in {"outbox", "event"}}

    @contextlib.asynccontextmanager
    async def connect(self, **options: Any) -> AsyncGenerator[Socket]:
        """Open a WebSocket that hasn't introduced itself."""
        options = {"subprotocols": [SUBPROTOCOL], "compression": None, **options}
        uri = f"ws://127.0.0.1:{self.port}/graphql"
        async with websockets.connect(uri, **options) as connection:
            yield Socket(connection)

    @contextlib.asynccontextmanager
    async def socket(self, token: str | None = None, **options: Any) -> AsyncGenerator[Socket]:
        """Open a WebSocket of the token's holder, alice unless told otherwise."""
        async with self.connect(**options) as socket:
            authorization = f"Bearer {token or self.token()}"
            await socket.send(
                {"type": "connection_init", "payload": {"authorization": authorization}}
            )
            assert await socket.receive() == {"type": "connection_ack"}
            yield socket


def account_id(account: Account | Wallet) -> str:
    return encode_account_id(account.id)


def subscribers() -> float:
    """Count the feeds that this process serves."""
    return sum(metric("saldo_subscribers", field=field) for field in FEEDS)


async def until_subscribers(count: int) -> None:
    """Wait until so many feeds are served."""
    await until(lambda: subscribers() == count)


@contextlib.asynccontextmanager
async def running_server(
    url: str,
    limits: Limits | None = None,
    *,
    engine_limits: EngineLimits = PATIENT,
    pool_size: int = 5,
    pool_timeout_ms: int = 5_000,
    broadcast_url: str | None = "memory://",
) -> AsyncGenerator[ApiServer]:
    """Run a server on a database until the block is left."""
    limits = limits or Limits(poll_seconds=0.5)
    open_pool = partial(Database, url, pool_timeout_ms=pool_timeout_ms)
    reads = open_pool(pool_size=pool_size, application_name="test read")
    postings = DriverConnections(url)
    relaying = open_pool(pool_size=3)
    link = BroadcastLink(partial(open_broadcast, broadcast_url, url))
    hub, relay = Hub(relaying, link), Relay(relaying, link)
    engine = PostingEngine(postings, engine_limits, committed=relay.wake)
    lookups = Lookups(postings)
    ledger, reader = Ledger(reads, engine, lookups, new_id), Reader(reads)
    upkeep = Upkeep(reads, engine, lookups, new_id)
    tokens = Tokens(SECRET)
    app = Starlette(routes=graphql_routes(Services(ledger, reader, hub, tokens, limits)))
    server = _QuietServer(
        Config(app, port=0, lifespan="off", log_level="warning", timeout_graceful_shutdown=5)
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            loops = [tasks.create_task(run()) for run in (link.run, hub.run, relay.run)]
            working = tasks.create_task(engine.run())
            serving = tasks.create_task(server.serve())
            await until(lambda: server.started)
            port = server.servers[0].sockets[0].getsockname()[1]
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
                books = RunningLedger(ledger, reader, upkeep, engine, postings, url, working)
                yield ApiServer(books, hub, tokens, http, port, reads, limits)
            server.should_exit = True
            await serving
            engine.close()
            for loop in loops:
                loop.cancel()
    finally:
        for pool in (reads, postings, relaying):
            await pool.close()

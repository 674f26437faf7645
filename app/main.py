"""The composition root: from settings to a running application. Whoever wants to know how Saldo hangs together reads this.

A request enters through `schema`, is decided and booked by `ledger`, whose posting engine writes it with its event in one
database transaction, and leaves through `relay`, which numbers events and wakes the subscriptions of all processes.

Connections. A process opens up to `pool_size` for reading, `posting_in_flight` for posting and two for what is looked up before,
four for relay and hub, one for the readiness probe, and two of Broadcaster's where that goes through PostgreSQL. Reading
never takes one from posting.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from uuid_utils.compat import uuid7

from app import metrics
from app.background import Background
from app.database import Database
from app.driver import DriverConnections
from app.housekeeping import Housekeeping, Job
from app.ledger.openings import Openings
from app.ledger.posting.engine import EngineLimits, PostingEngine
from app.ledger.reader import Reader
from app.ledger.reading.lookups import Lookups
from app.ledger.service import Ledger
from app.ledger.system_accounts import SystemAccounts
from app.ledger.upkeep import Upkeep
from app.relay.broadcast import open_broadcast
from app.relay.doorbell import Doorbell
from app.relay.drain import Relay
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from app.schema import Limits, Services, graphql_routes
from app.settings import Settings
from app.tokens import Tokens, local_secret
from app.web.health import PROBE_TIMEOUT_MS, Readiness, health_routes
from app.web.page import page_routes
from app.web.prometheus import Siblings, metrics_routes
from app.web.requests import BrokenOff, RequestIds

_RELAY_CONNECTIONS: Final = 4
"""Three for the relay, which delivers, raises its floor and measures, and one for the hub's reading of the log."""

_DRAIN_SHARE: Final = 0.15
"""What a background loop may use of the time to stop; the requests have had most of it."""

_PATIENCE_MS: Final = 30_000
"""How long what a command posts by itself may wait for the database: nobody waits for its answer."""

_LOOK_SECONDS: Final = 0.5
"""How often a relay process looks whether its loops still run."""


@dataclass(frozen=True, slots=True)
class Application:
    """What a server process runs."""

    asgi: Starlette
    background: Background
    readiness: Readiness

    @property
    def failed(self) -> bool:
        """Whether a background loop has died, so that the process must stop."""
        return self.background.failed

    def leave(self) -> None:
        """Say that the process stops soon; called before the first connection is closed."""
        self.readiness.leave()


@dataclass(frozen=True, slots=True)
class _Pools:
    """The connections to the database, apart from each other by what may wait for what."""

    reading: Database
    posting: DriverConnections
    relaying: Database
    probing: Database

    @classmethod
    def of(cls, settings: Settings) -> "_Pools":
        open_pool = partial(
            Database,
            database_url_of(settings),
            pool_timeout_ms=settings.pool_timeout_ms,
            statement_timeout_ms=settings.statement_timeout_ms,
        )
        return cls(
            reading=open_pool(pool_size=settings.pool_size, application_name="saldo read"),
            posting=DriverConnections(
                database_url_of(settings),
                statement_timeout_ms=settings.statement_timeout_ms,
                application_name="saldo post",
            ),
            relaying=_relaying_pool(settings),
            probing=Database(
                database_url_of(settings),
                pool_size=1,
                pool_timeout_ms=PROBE_TIMEOUT_MS,
                statement_timeout_ms=PROBE_TIMEOUT_MS,
                application_name="saldo probe",
            ),
        )

    async def close(self) -> None:
        for pool in (self.reading, self.posting, self.relaying, self.probing):
            await pool.close()


def create_application(settings: Settings, *, siblings: Siblings | None = None) -> Application:
    """Put a server process together; nothing is opened or started before its lifespan begins.

    `settings` names a database whose schema is up to date. `siblings` are the other processes of the same server.
    """
    pools = _Pools.of(settings)
    link = _link(settings)
    hub = Hub(pools.relaying, link)
    relay = Relay(pools.relaying, link) if settings.relay == "inside" else None
    doorbell = Doorbell(link)
    engine = PostingEngine(
        pools.posting,
        EngineLimits(
            batch_max=settings.posting_batch_max,
            in_flight=settings.posting_in_flight,
            queue_max=settings.posting_queue_max,
            deadline_ms=settings.posting_deadline_ms,
        ),
        committed=relay.wake if relay is not None else doorbell.ring,
    )
    lookups = Lookups(pools.posting)
    services = Services(
        ledger=Ledger(pools.reading, engine, lookups, uuid7),
        reader=Reader(pools.reading),
        hub=hub,
        tokens=tokens_of(settings),
        limits=_limits_of(settings),
    )
    background = Background(drain_seconds=settings.shutdown_grace_seconds * _DRAIN_SHARE)
    housekeeping = _housekeeping(settings, Upkeep(pools.reading, engine, lookups, uuid7))
    readiness = Readiness(pools.probing)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        # What is entered last ends first: the engine posts what is queued, then the relay stops, and the pools close.
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(pools.close)
            if siblings is not None:
                await stack.enter_async_context(siblings.answering())
            await stack.enter_async_context(background.running("broadcast", link.run))
            await stack.enter_async_context(background.running("hub", hub.run))
            if relay is not None:
                await stack.enter_async_context(background.running("relay", relay.run))
            else:
                await stack.enter_async_context(background.running("doorbell", doorbell.run))
            await stack.enter_async_context(
                background.running("posting engine", engine.run, end=engine.close)
            )
            await stack.enter_async_context(background.running("housekeeping", housekeeping.run))
            yield

    app = Starlette(
        routes=[
            *health_routes(readiness),
            *metrics_routes(siblings),
            *page_routes(),
            *graphql_routes(services),
        ],
        middleware=[Middleware(RequestIds), Middleware(BrokenOff)],
        lifespan=lifespan,
    )
    return Application(app, background, readiness)


async def run_relay(settings: Settings, stop: asyncio.Event) -> bool:
    """Deliver events until `stop` is set; tells whether the relay ran until then."""
    database = _relaying_pool(settings)
    link = _link(settings)
    relay = Relay(database, link)
    background = Background(drain_seconds=settings.shutdown_grace_seconds * _DRAIN_SHARE)
    try:
        async with (
            background.running("broadcast", link.run),
            background.running("relay", relay.run),
        ):
            while not stop.is_set() and not background.failed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await stop.wait()
    finally:
        await database.close()
    return not background.failed


@dataclass(frozen=True, slots=True)
class Books:
    """The ledger as a command works with it that books by itself, beside whatever servers there are."""

    openings: Openings
    upkeep: Upkeep


@contextlib.asynccontextmanager
async def running_books(settings: Settings) -> AsyncGenerator[Books]:
    """Run a posting engine until the block is left; relays find what it books by themselves, without being woken."""
    database = Database(
        database_url_of(settings),
        pool_size=settings.pool_size,
        pool_timeout_ms=settings.pool_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
        application_name="saldo books",
        probes_only=True,
    )
    postings = DriverConnections(
        database_url_of(settings),
        statement_timeout_ms=settings.statement_timeout_ms,
        application_name="saldo post",
    )
    engine = PostingEngine(
        postings,
        EngineLimits(
            batch_max=settings.posting_batch_max,
            in_flight=settings.posting_in_flight,
            queue_max=settings.posting_queue_max,
            deadline_ms=_PATIENCE_MS,
        ),
    )
    background = Background(drain_seconds=settings.shutdown_grace_seconds)
    try:
        async with background.running("posting engine", engine.run, end=engine.close):
            yield Books(
                Openings(database, engine, SystemAccounts(database, uuid7), uuid7),
                Upkeep(database, engine, Lookups(postings), uuid7),
            )
    finally:
        await postings.close()
        await database.close()


def tokens_of(settings: Settings) -> Tokens:
    """Issue and check tokens with the configured secret, or with the one that a laptop keeps in its data directory."""
    if settings.jwt_secret is None:
        secret = local_secret(settings.data_dir)
    else:
        secret = settings.jwt_secret.get_secret_value()
    return Tokens(secret, issuer=settings.jwt_issuer, audience=settings.jwt_audience)


def database_url_of(settings: Settings) -> str:
    """Return the address of the ledger; raises ValueError where none was filled in."""
    if settings.database_url is None:
        raise ValueError("the settings name no database")
    return settings.database_url


def _limits_of(settings: Settings) -> Limits:
    return Limits(
        graphiql=settings.graphiql,
        introspection=settings.introspection,
        body_bytes=settings.body_limit_bytes,
        sockets=settings.max_sockets_per_process,
        subscriptions_per_socket=settings.max_subscriptions_per_socket,
        poll_seconds=settings.subscription_poll_seconds,
    )


def _housekeeping(settings: Settings, upkeep: Upkeep) -> Housekeeping:
    return Housekeeping(
        (
            Job(
                "expire_holds",
                settings.hold_expiry_seconds,
                upkeep.expire_holds,
                metrics.HOLDS_EXPIRED,
                bounded=True,
            ),
            Job(
                "sweep_hot_accounts",
                settings.sweep_seconds,
                upkeep.sweep_hot_accounts,
                metrics.SWEEPS,
            ),
            Job(
                "take_snapshots",
                settings.snapshot_seconds,
                upkeep.take_snapshots,
                metrics.SNAPSHOTS,
            ),
        )
    )


def _relaying_pool(settings: Settings) -> Database:
    return Database(
        database_url_of(settings),
        pool_size=_RELAY_CONNECTIONS,
        pool_timeout_ms=settings.pool_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
        application_name="saldo relay",
        probes_only=True,
    )


def _link(settings: Settings) -> BroadcastLink:
    return BroadcastLink(partial(open_broadcast, settings.broadcast_url, database_url_of(settings)))

"""P04: postings notify nobody, and no session that listens carelessly fills the server's queue."""

import asyncio

from app.relay.drain import RelayPace
from tests.relay.support import create_accounts, move, pending, server
from tests.support.ledger import running_ledger
from tests.support.postgres import TestDatabase, connect, scalar

QUICK = RelayPace(poll_seconds=0.01, gather_seconds=0.0)


async def test_p04_the_queue_stays_empty_beside_a_session_that_listens_inside_a_transaction(
    database_url: TestDatabase,
) -> None:
    """A foreign listener that never comes back: the queue holds what was sent since, which are wake-ups, not rows."""
    accounts = await create_accounts(database_url, 50)
    async with connect(database_url.superuser_url) as foreign:
        await foreign.execute("listen saldo_events; begin; select 1")
        async with server(database_url, pace=QUICK) as there:

            async def post() -> None:
                async with connect(database_url.runtime_url) as connection:
                    for first in range(0, 50, 2):
                        for _ in range(10):
                            await move(connection, accounts[first : first + 2])

            await asyncio.gather(*(post() for _ in range(4)))
            watch = there.hub.watch(accounts)
            while await pending(database_url):
                await watch.changed(0.05)
            usage = await scalar(database_url.superuser_url, "select pg_notification_queue_usage()")
    assert usage < 0.01


async def test_p04_a_posting_does_not_notify(database_url: TestDatabase) -> None:
    """A connection that listens to everything Saldo says hears nothing from postings alone."""
    heard: list[object] = []

    def hear(_connection: object, _process_id: int, _channel: str, payload: object) -> None:
        heard.append(payload)

    async with connect(database_url.superuser_url) as listener:
        for channel in ("saldo_events", "saldo_doorbell", "saldo_pulse"):
            await listener.add_listener(channel, hear)
        async with running_ledger(database_url.runtime_url) as ledger:
            await ledger.wallet("alice", funds=10)
        await listener.execute("select pg_notify('saldo_events', 'the only one')")
        await listener.fetchval("select 1")
    assert heard == ["the only one"]
    functions = await scalar(
        database_url.superuser_url,
        "select count(*) from pg_proc where prosrc ilike '%notify%' and pronamespace = 'public'::regnamespace",
    )
    assert functions == 0


async def test_p04_the_listening_connection_is_never_inside_a_transaction(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    async with (
        server(database_url, pace=QUICK) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch = there.hub.watch(accounts)
        for _ in range(5):
            await move(poster, accounts)
            await watch.changed(1)
            states = await scalar(
                database_url.superuser_url,
                """
                select array_agg(distinct state) from pg_stat_activity
                where datname = current_database() and application_name = 'saldo listen'
                """,
            )
            assert set(states or ()) <= {"idle", "active"}

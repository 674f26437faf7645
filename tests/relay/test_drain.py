"""The relay gives every event its place, once and in order, whatever happens to it."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from functools import partial
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import text

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.drain import Relay, RelayPace
from app.relay.link import BroadcastLink
from tests.relay.support import (
    PATIENCE_SECONDS,
    Connection,
    check_log,
    create_accounts,
    lock,
    move,
    pending,
    read_events,
    running,
    server,
    tell,
    terminate,
    until,
)
from tests.support.postgres import TestDatabase, connect

HASTY = RelayPace(batch_max=7, poll_seconds=0.02, retry_seconds=0.001, gather_seconds=0.0)
"""Small claims that follow each other at once, so that relays meet as often as they can."""


@contextlib.asynccontextmanager
async def lone_relay(database: TestDatabase) -> AsyncGenerator[Relay]:
    """A relay that does nothing by itself; the test makes its claims."""
    pool = Database(database.runtime_url, pool_size=2, probes_only=True)
    try:
        yield Relay(pool, BroadcastLink(partial(open_broadcast, "memory://", database.runtime_url)))
    finally:
        await pool.close()


async def claimed_positions(relay: Relay) -> list[int] | None:
    events = await relay._claim()
    return None if events is None else [event.position for event in events]


async def move_often(database: TestDatabase, accounts: list[UUID], count: int) -> list[UUID]:
    async with connect(database.runtime_url) as connection:
        return [
            await move(connection, random.sample(accounts, random.randint(1, 3)))
            for _ in range(count)
        ]


async def run_and_cancel_at_random(database: TestDatabase, name: str) -> None:
    """Be a relay that is cancelled, wherever it is, again and again."""
    while True:
        pool = Database(database.runtime_url, pool_size=2, application_name=name, probes_only=True)
        link = BroadcastLink(partial(open_broadcast, "memory://", database.runtime_url))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(random.uniform(0.0, 0.2)), asyncio.TaskGroup() as tasks:
                    tasks.create_task(link.run())
                    tasks.create_task(Relay(pool, link, HASTY).run())
        finally:
            await pool.close()


async def terminate_at_random(database: TestDatabase) -> None:
    while True:
        await asyncio.sleep(random.uniform(0.1, 0.3))
        await terminate(database, "victim%")


async def test_e01_e03_relays_that_compete_are_cancelled_and_cut_off_deliver_each_event_once_and_in_order(
    database_url: TestDatabase,
) -> None:
    """Four relays, of which each is cancelled in the middle of anything and its connections are ended by the server.

    Fails with an account that goes backwards where the claim doesn't go by the order of ids.
    """
    accounts = await create_accounts(database_url, 5)
    async with running(
        *(run_and_cancel_at_random(database_url, f"victim {number}") for number in range(4)),
        terminate_at_random(database_url),
    ):
        posted = await asyncio.gather(*(move_often(database_url, accounts, 100) for _ in range(4)))

        async def is_empty() -> bool:
            return await pending(database_url) == 0

        await until(is_empty)
    check_log(await read_events(database_url), [each for ids in posted for each in ids])


async def test_e03_while_one_relay_delivers_another_claims_nothing_and_then_goes_on_behind_it(
    database_url: TestDatabase,
) -> None:
    """Fails where `lock_lane` doesn't lock the row.

    The log's keys would still refuse a repeated position, so the relay runs into the other one instead of standing back.
    """
    accounts = await create_accounts(database_url, 1)
    async with (
        lone_relay(database_url) as relay,
        connect(database_url.runtime_url) as other,
        connect(database_url.runtime_url) as poster,
    ):
        transaction_id = await move(poster, accounts)
        transaction = other.transaction()
        await transaction.start()
        assert (
            await other.fetchval(
                "select position from relay_lane where lane = 0 for update skip locked"
            )
            == 0
        )
        assert await claimed_positions(relay) is None
        assert await pending(database_url) == 1
        await other.execute("update relay_lane set position = 41 where lane = 0")
        await transaction.commit()
        assert await claimed_positions(relay) == [42]
    assert [event.transaction_id for event in await read_events(database_url)] == [transaction_id]


async def test_p02_an_idle_transaction_here_or_in_another_database_holds_up_nothing(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    elsewhere = database_url.superuser_url.replace(f"/{database_url.name}?", "/postgres?")
    async with (
        connect(database_url.superuser_url) as idle,
        connect(elsewhere) as idle_elsewhere,
        connect(database_url.runtime_url) as poster,
        lone_relay(database_url) as relay,
    ):
        assert await idle_elsewhere.fetchval("select current_database()") != database_url.name
        for connection in (idle, idle_elsewhere):
            await connection.execute("begin; select pg_current_xact_id()")
        await move(poster, accounts)
        await move(poster, accounts)
        assert await claimed_positions(relay) == [1, 2]


async def test_p02_after_a_thousand_ids_that_were_rolled_back_an_event_is_delivered_at_once(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 1)
    async with connect(database_url.runtime_url) as poster, lone_relay(database_url) as relay:
        transaction = poster.transaction()
        await transaction.start()
        for _ in range(1_000):
            await tell(poster, uuid4(), accounts)
        await transaction.rollback()
        posted = [await move(poster, accounts)]
        assert await claimed_positions(relay) == [1]
    check_log(await read_events(database_url), posted)


async def test_p02_who_starts_first_and_locks_second_is_delivered_second(
    database_url: TestDatabase,
) -> None:
    """The events are in the order of the locks, not of the transactions' starts or ids."""
    accounts = await create_accounts(database_url, 1)
    first_to_start, second_to_start = uuid4(), uuid4()
    async with (
        connect(database_url.runtime_url) as early,
        connect(database_url.runtime_url) as late,
        lone_relay(database_url) as relay,
    ):
        early_transaction = early.transaction()
        await early_transaction.start()
        await early.fetchval("select pg_current_xact_id()")
        async with late.transaction():
            await lock(late, accounts)
            await tell(late, second_to_start, accounts)
        await lock(early, accounts)
        await tell(early, first_to_start, accounts)
        await early_transaction.commit()
        assert await claimed_positions(relay) == [1, 2]
    events = await read_events(database_url)
    assert [event.transaction_id for event in events] == [second_to_start, first_to_start]
    check_log(events, [first_to_start, second_to_start])


async def test_an_event_that_commits_after_later_ids_were_delivered_is_delivered_too(
    database_url: TestDatabase,
) -> None:
    """Fails where the claim remembers the highest id and reads on from there, as a reader with a cursor would."""
    one, other = await create_accounts(database_url, 2)
    slow_id = uuid4()
    async with (
        connect(database_url.runtime_url) as slow,
        connect(database_url.runtime_url) as quick,
        lone_relay(database_url) as relay,
    ):
        transaction = slow.transaction()
        await transaction.start()
        await lock(slow, [one])
        await tell(slow, slow_id, [one])
        quick_id = await move(quick, [other])
        assert await claimed_positions(relay) == [1]
        await transaction.commit()
        assert await claimed_positions(relay) == [2]
    assert [event.transaction_id for event in await read_events(database_url)] == [
        quick_id,
        slow_id,
    ]


async def test_claims_are_bounded_and_go_on_where_the_last_one_ended(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    pool = Database(database_url.runtime_url, pool_size=2, probes_only=True)
    link = BroadcastLink(partial(open_broadcast, "memory://", database_url.runtime_url))
    relay = Relay(pool, link, RelayPace(batch_max=2))
    async with connect(database_url.runtime_url) as poster:
        posted = [await move(poster, accounts) for _ in range(5)]
    claims = [await claimed_positions(relay) for _ in range(4)]
    await pool.close()
    assert claims == [[1, 2], [3, 4], [5], []]
    check_log(await read_events(database_url), posted)


async def test_an_idle_relay_writes_nothing(database_url: TestDatabase) -> None:
    async with lone_relay(database_url) as relay, connect(database_url.superuser_url) as superuser:
        question = "select pg_snapshot_xmax(pg_current_snapshot())::text"
        before = await superuser.fetchval(question)
        assert [await claimed_positions(relay) for _ in range(3)] == [[], [], []]
        assert await superuser.fetchval(question) == before


async def test_a_relay_is_woken_and_need_not_wait_for_its_poll(database_url: TestDatabase) -> None:
    accounts = await create_accounts(database_url, 1)
    never = RelayPace(poll_seconds=10 * PATIENCE_SECONDS)
    async with (
        server(database_url, pace=never) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch = there.hub.watch(accounts)
        for _ in range(3):
            await move(poster, accounts)
            there.relay.wake()
            assert await watch.changed(PATIENCE_SECONDS) == frozenset(accounts)
            watch.seen(accounts[0], len(await read_events(database_url)))


async def test_an_event_that_stands_twice_is_told_once_and_stops_nobody(
    database_url: TestDatabase,
) -> None:
    """E04: a row that was written by hand must not block the queue."""
    accounts = await create_accounts(database_url, 2)
    async with connect(database_url.runtime_url) as poster, lone_relay(database_url) as relay:
        delivered = await move(poster, accounts)
        assert await claimed_positions(relay) == [1]
        waiting = await move(poster, accounts)
        await _repeat(poster, delivered)
        await _repeat(poster, waiting)
        following = await move(poster, accounts)
        assert await claimed_positions(relay) is None
        assert await claimed_positions(relay) == [2, 3]
    check_log(await read_events(database_url), [delivered, waiting, following])


async def _repeat(connection: Connection, transaction_id: UUID) -> None:
    await connection.execute(
        "insert into outbox (transaction_id, account_ids, sequences) values ($1, '{}', '{}')",
        transaction_id,
    )


@pytest.mark.parametrize(
    ("account_ids", "sequences"),
    [("{}", "{}"), ("{NULL}", "{NULL}"), ("{}", "{1,2}"), ("{{},{}}", "{}")],
)
async def test_an_event_without_sense_is_delivered_and_stops_nobody(
    database_url: TestDatabase, account_ids: str, sequences: str
) -> None:
    """E04: what can't be told to anybody still gets its position, or the log would have a hole."""
    accounts = await create_accounts(database_url, 1)
    async with connect(database_url.runtime_url) as poster, lone_relay(database_url) as relay:
        await poster.execute(
            f"""
            insert into outbox (transaction_id, account_ids, sequences)
            values (gen_random_uuid(), '{account_ids}', '{sequences}')
            """  # noqa: S608 - literals of this test
        )
        await move(poster, accounts)
        assert await claimed_positions(relay) == [1, 2]


async def test_the_claim_reads_the_outbox_by_its_key_even_while_it_is_empty(
    database_url: TestDatabase,
) -> None:
    """P09: a plan that is made while the table is small must not read it from end to end once it isn't."""
    from app.relay.store import _SQL  # noqa: PLC0415 - only this test looks at the statement itself

    database = Database(database_url.runtime_url, probes_only=True)
    async with database.transaction() as connection:
        statement = text(f"explain {_SQL['claim_events'].text}")
        plan = "\n".join(
            (
                await connection.execute(statement, {"position": 0, "floor": 0, "batch_max": 10})
            ).scalars()
        )
    await database.close()
    assert "Seq Scan" not in plan, plan
    assert "Index Only Scan using outbox_pkey" in plan, plan


async def test_the_relay_needs_no_more_rights_than_the_server_has(
    database_url: TestDatabase,
) -> None:
    """The log can't be changed after the fact, not even by the relay."""
    accounts = await create_accounts(database_url, 1)
    async with connect(database_url.runtime_url) as runtime, lone_relay(database_url) as relay:
        posted = [await move(runtime, accounts)]
        await claimed_positions(relay)
        for statement in (
            "update event set position = 7",
            "delete from event",
            "delete from relay_lane",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await runtime.execute(statement)
    check_log(await read_events(database_url), posted)

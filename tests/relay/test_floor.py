"""The relay doesn't look again past what it has delivered, and never past what may still come (P02, P09)."""

from uuid import uuid4

from app.database import Database
from app.relay import store
from app.relay.floor import Floor
from tests.relay.support import create_accounts, lock, tell
from tests.support.postgres import TestDatabase, connect

FAR = 1_000_000
"""An id that is far enough above the floor to make a step worth while."""


async def test_the_floor_rises_to_what_was_seen_once_nobody_writes(
    database_url: TestDatabase,
) -> None:
    database = Database(database_url.runtime_url)
    floor = Floor(database)
    floor.fall()
    floor.has_seen(FAR)
    await floor.rise()
    assert floor.id == 0
    await floor.rise()
    await database.close()
    assert floor.id == FAR


async def test_the_floor_stays_below_an_event_that_was_written_before_and_commits_late(
    database_url: TestDatabase,
) -> None:
    """Fails with a lost event where the floor rises without looking at who writes."""
    accounts = await create_accounts(database_url, 1)
    database = Database(database_url.runtime_url)
    floor = Floor(database)
    floor.fall()
    async with connect(database_url.runtime_url) as slow:
        transaction = slow.transaction()
        await transaction.start()
        await lock(slow, accounts)
        await tell(slow, uuid4(), accounts)
        floor.has_seen(FAR)
        for _ in range(3):
            await floor.rise()
        assert floor.id == 0
        await transaction.commit()
    await floor.rise()
    async with database.read_only() as connection:
        assert await store.outbox_has_events(connection, floor.id)
    await database.close()


async def test_p02_somebody_else_at_work_in_the_database_does_not_hold_the_floor_down(
    database_url: TestDatabase,
) -> None:
    database = Database(database_url.runtime_url)
    floor = Floor(database)
    floor.fall()
    async with connect(database_url.superuser_url) as report:
        await report.execute("begin isolation level repeatable read")
        await report.execute("select pg_current_xact_id(), count(*) from outbox")
        floor.has_seen(FAR)
        await floor.rise()
        await floor.rise()
    await database.close()
    assert floor.id == FAR


async def test_a_floor_that_fell_while_it_was_rising_stays_down(database_url: TestDatabase) -> None:
    """After a fail-over ids may be given again; nothing that was learnt before may outlive the fall."""
    database = Database(database_url.runtime_url)
    floor = Floor(database)
    floor.fall()
    floor.has_seen(FAR)
    await floor.rise()
    floor.fall()
    await floor.rise()
    await floor.rise()
    await database.close()
    assert floor.id == 0


async def test_ids_are_not_cached_by_sessions(database_url: TestDatabase) -> None:
    """With cached ids two postings of one account could take theirs in the wrong order."""
    async with connect(database_url.owner_url) as owner:
        cache = await owner.fetchval(
            "select seqcache from pg_sequence where seqrelid = pg_get_serial_sequence('outbox', 'id')::regclass"
        )
    assert cache == 1

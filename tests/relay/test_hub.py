"""The hub hears of everything that happens, whatever gets lost on the way."""

from collections.abc import Mapping
from functools import partial
from uuid import UUID

import pytest

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.drain import RelayPace
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from app.relay.messages import EVENTS_CHANNEL, RESYNC, WakeUp, encode
from tests.relay.support import (
    PATIENCE_SECONDS,
    create_accounts,
    listening_processes,
    move,
    running,
    server,
    terminate,
    until,
)
from tests.support.ledger import metric
from tests.support.postgres import TestDatabase, connect

NEVER_SECONDS = 10.0 * PATIENCE_SECONDS
"""A poll that doesn't come, so that only what the test is about can have woken anybody."""

QUICK = RelayPace(poll_seconds=0.02)
NOW = 0.0

message_driven = partial(
    server, pace=QUICK, poll_seconds=NEVER_SECONDS, pulse_seconds=NEVER_SECONDS
)
"""A server that learns of nothing but by messages."""


def wake_up(first: int, last: int, reached: Mapping[UUID, int] | None) -> str:
    return encode(WakeUp(first, last, reached))


async def give_positions(
    database: TestDatabase, accounts: list[UUID], count: int, *, account_ids: int = 1
) -> None:
    """Write events with their positions, as another process's relay would have done."""
    async with connect(database.runtime_url) as connection:
        await connection.execute(
            """
            with lane as (
              update relay_lane set position = position + $1 where lane = 0 returning position
            )
            insert into event (position, transaction_id, account_ids, sequences)
            select lane.position - $1 + nth, gen_random_uuid(), $2, array_fill(nth, array[$3::int])
            from lane, generate_series(1, $1) as nth
            """,
            count,
            accounts[:account_ids],
            account_ids,
        )


@pytest.mark.parametrize("broadcast_url", [None, "memory://"])
async def test_a_posting_wakes_who_watches_its_accounts(
    database_url: TestDatabase, broadcast_url: str | None
) -> None:
    one, other, foreign = await create_accounts(database_url, 3)
    async with (
        server(
            database_url, broadcast_url=broadcast_url, pace=QUICK, poll_seconds=NEVER_SECONDS
        ) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch, idle = there.hub.watch([one, other]), there.hub.watch([foreign])
        await move(poster, [one, other])
        moved = await watch.changed(PATIENCE_SECONDS)
        while len(moved) < 2:
            moved |= await watch.changed(PATIENCE_SECONDS)
        await until(lambda: there.hub.position == 1)
        idle.take()
        await move(poster, [one])
        assert await watch.changed(PATIENCE_SECONDS) == {one}
        assert idle.take() == []


async def test_servers_hear_of_each_others_postings(database_url: TestDatabase) -> None:
    """E01: several relays and several hubs; whoever delivers, everybody hears of it."""
    accounts = await create_accounts(database_url, 4)
    async with (
        server(database_url, pace=QUICK) as one,
        server(database_url, pace=QUICK) as two,
        server(database_url, pace=QUICK) as three,
        connect(database_url.runtime_url) as poster,
    ):
        watches = [each.hub.watch([account]) for each in (one, two, three) for account in accounts]
        for _ in range(5):
            await move(poster, accounts)
        for watch in watches:
            assert await watch.changed(PATIENCE_SECONDS) == watch.account_ids
        await until(lambda: [each.hub.position for each in (one, two, three)] == [5, 5, 5])


async def test_a_server_without_a_relay_hears_of_what_a_relay_elsewhere_delivers(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 1)
    async with (
        server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as without,
        server(database_url, pace=QUICK),
        connect(database_url.runtime_url) as poster,
    ):
        watch = without.hub.watch(accounts)
        await move(poster, accounts)
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)


async def test_e01_what_was_delivered_and_never_announced_is_found_in_the_log(
    database_url: TestDatabase,
) -> None:
    """A relay that is killed between its commit and its announcement: the next poll of the hub finds the events."""
    accounts = await create_accounts(database_url, 2)
    async with server(database_url, relays=False, poll_seconds=0.05) as there:
        watch = there.hub.watch(accounts)
        watch.take()
        await give_positions(database_url, accounts, 3)
        assert await watch.changed(PATIENCE_SECONDS) == {accounts[0]}
        assert there.hub.position == 3


async def test_e01_the_next_announcement_shows_the_hole_and_the_hub_reads_what_it_missed(
    database_url: TestDatabase,
) -> None:
    """Fails where the hub takes any message for the continuation."""
    missed, announced = await create_accounts(database_url, 2)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        watch = there.hub.watch([missed, announced])
        watch.take()
        await give_positions(database_url, [missed], 2)
        await give_positions(database_url, [announced], 1)
        there.hub._receive(wake_up(3, 3, {announced: 1}))
        assert watch.take() == [announced]
        assert await watch.changed(PATIENCE_SECONDS) >= {missed}
        await until(lambda: there.hub.position == 3)


async def test_p03_an_event_too_large_to_be_announced_in_full_reaches_everybody(
    database_url: TestDatabase,
) -> None:
    """One transaction of 400 accounts, of which no message could hold all."""
    accounts = await create_accounts(database_url, 400)
    async with (
        server(database_url, pace=QUICK, poll_seconds=NEVER_SECONDS) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watches = [there.hub.watch([account]) for account in accounts]
        for watch in watches:
            watch.take()
        await move(poster, accounts)
        for watch in watches:
            assert await watch.changed(PATIENCE_SECONDS) == watch.account_ids


async def test_duplicates_and_old_messages_change_nothing(database_url: TestDatabase) -> None:
    accounts = await create_accounts(database_url, 1)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        await give_positions(database_url, accounts, 5)
        there.hub._receive(wake_up(1, 5, {accounts[0]: 5}))
        assert there.hub.position == 5
        catch_ups = metric("saldo_hub_catch_ups_total")
        for text in (wake_up(1, 5, {}), wake_up(2, 3, None), wake_up(4, 4, {accounts[0]: 4})):
            there.hub._receive(text)
            assert there.hub.position == 5
        there.hub._receive(wake_up(3, 6, {}))
        assert there.hub.position == 6
        assert metric("saldo_hub_catch_ups_total") == catch_ups


@pytest.mark.parametrize("text", ["nonsense", '{"first":1}', ""])
async def test_a_message_that_nobody_can_read_makes_the_hub_look_for_itself(
    database_url: TestDatabase, text: str
) -> None:
    accounts = await create_accounts(database_url, 1)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        watch = there.hub.watch(accounts)
        watch.take()
        await give_positions(database_url, accounts, 1)
        await there.link.publish(EVENTS_CHANNEL, text)
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)


async def test_a_log_that_is_shorter_than_it_was_leaves_the_hub_in_doubt(
    database_url: TestDatabase,
) -> None:
    """A standby that was promoted without the last events: positions are given again, for other events."""
    accounts = await create_accounts(database_url, 2)
    async with server(database_url, relays=False, poll_seconds=0.02) as there:
        await give_positions(database_url, accounts, 4)
        await until(lambda: there.hub.position == 4)
        watch = there.hub.watch(accounts)
        async with connect(database_url.superuser_url) as superuser:
            await superuser.execute(
                "set session_replication_role = replica; delete from event where position > 2"
            )
            await superuser.execute("update relay_lane set position = 2")
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)
        assert there.hub.position == 2


async def test_a_log_that_does_not_reach_back_leaves_the_hub_in_doubt(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        watch = there.hub.watch(accounts)
        watch.take()
        await give_positions(database_url, accounts, 4)
        async with connect(database_url.superuser_url) as superuser:
            await superuser.execute(
                "set session_replication_role = replica; delete from event where position < 3"
            )
        there.hub._receive(wake_up(9, 9, None))
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)
        assert there.hub.position == 4


async def test_a_hub_that_is_far_behind_jumps_and_wakes_everybody(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    pool = Database(database_url.runtime_url)
    link = BroadcastLink(partial(open_broadcast, "memory://", ""))
    hub = Hub(pool, link, poll_seconds=0.02, page=3)
    async with running(hub.run()):
        await until(lambda: hub.position == 0)
        watch = hub.watch(accounts)
        await give_positions(database_url, accounts, 20)
        assert await watch.changed(PATIENCE_SECONDS) == {accounts[0]}
        await until(lambda: hub.position == 20)
        watch.take()
        await give_positions(database_url, accounts, 200)
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)
        await until(lambda: hub.position == 220)
    await pool.close()


async def test_p04_its_listening_connection_is_ended_by_the_server_and_it_misses_nothing(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 2)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        await until(partial(_listens, database_url))
        watch = there.hub.watch(accounts)
        for expected in (2, 4, 6):
            (before,) = await listening_processes(database_url)
            watch.take()
            assert await terminate(database_url, "saldo listen") == 1
            await give_positions(database_url, accounts, 2)
            assert await watch.changed(PATIENCE_SECONDS) == set(accounts)
            await until(lambda expected=expected: there.hub.position == expected)
            await until(partial(_listens, database_url, before))


async def _listens(database: TestDatabase, other_than: int = 0) -> bool:
    processes = await listening_processes(database)
    return len(processes) == 1 and processes != [other_than]


@pytest.mark.parametrize("broadcast_url", [None, "memory://"])
async def test_broadcasters_listener_is_killed_and_it_hears_again(
    database_url: TestDatabase, broadcast_url: str | None
) -> None:
    """Broadcaster would leave its subscribers waiting for ever."""
    accounts = await create_accounts(database_url, 1)
    async with (
        message_driven(database_url, broadcast_url=broadcast_url) as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch = there.hub.watch(accounts)
        for _ in range(2):
            await until(lambda: there.link._broadcast is not None)
            broadcast = there.link._broadcast
            assert broadcast is not None
            broadcast._listener_task.cancel()
            await until(lambda broadcast=broadcast: there.link._broadcast not in (None, broadcast))
            watch.take()
            await move(poster, accounts)
            assert await watch.changed(PATIENCE_SECONDS) == set(accounts)


async def test_broadcasters_listener_dies_of_an_exception_and_it_hears_again(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 1)
    async with (
        message_driven(database_url, broadcast_url="memory://") as there,
        connect(database_url.runtime_url) as poster,
    ):
        watch = there.hub.watch(accounts)
        broadcast = there.link._broadcast
        assert broadcast is not None
        # Nothing but a queue stands behind this backend, so its failure is a message of the wrong kind.
        await broadcast._backend._published.put(None)  # type: ignore[attr-defined]
        await until(lambda: there.link._broadcast not in (None, broadcast))
        watch.take()
        await move(poster, accounts)
        assert await watch.changed(PATIENCE_SECONDS) == set(accounts)


async def test_a_broadcast_that_is_deaf_without_a_word_is_replaced(
    database_url: TestDatabase,
) -> None:
    """A pooler that swallows LISTEN, a redis connection that nobody reads: only the missing pulse shows it."""
    async with server(database_url, broadcast_url="memory://", pulse_seconds=0.05) as there:
        broadcast = there.link._broadcast
        assert broadcast is not None
        broadcast._subscribers.clear()
        await until(lambda: there.link._broadcast not in (None, broadcast))


async def test_p11_watching_holds_no_connection_of_the_pool(database_url: TestDatabase) -> None:
    accounts = await create_accounts(database_url, 5)
    async with server(database_url, poll_seconds=NEVER_SECONDS) as there:
        watches = [there.hub.watch(accounts) for _ in range(200)]
        async with running(*(watch.changed(NEVER_SECONDS) for watch in watches)):
            # The relay lends itself a connection while it starts; what the watchers hold would stay away for ever.
            await until(lambda: there.database.engine.pool.checkedout() == 0)  # type: ignore[attr-defined]
        for watch in watches:
            watch.close()
        assert there.hub.watched_accounts == 0


async def test_resync_tells_everybody_that_anything_may_have_changed(
    database_url: TestDatabase,
) -> None:
    accounts = await create_accounts(database_url, 3)
    async with server(database_url, relays=False, poll_seconds=NEVER_SECONDS) as there:
        watch = there.hub.watch(accounts)
        watch.take()
        there.hub._receive(RESYNC)
        assert await watch.changed(NOW) == set(accounts)

"""Feeds show every entry once and in order, and the newest balance, to quick and slow readers alike."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from functools import partial
from uuid import UUID, uuid4

import pytest

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.drain import RelayPace
from app.relay.feeds import follow_balances, follow_entries
from app.relay.hub import Hub
from app.relay.link import BroadcastLink
from app.relay.messages import UNTOLD
from tests.relay.support import (
    PATIENCE_SECONDS,
    Line,
    Server,
    State,
    read_lines,
    read_states,
    running,
    server,
    terminate,
    until,
)
from tests.support.ledger import RunningLedger, Wallet, running_ledger
from tests.support.postgres import TestDatabase

NEVER_SECONDS = 10.0 * PATIENCE_SECONDS
QUICK = RelayPace(poll_seconds=0.02)


@contextlib.asynccontextmanager
async def at_work(database: TestDatabase) -> AsyncGenerator[tuple[RunningLedger, Server]]:
    async with (
        running_ledger(database.runtime_url) as ledger,
        server(database, pace=QUICK) as there,
    ):
        yield ledger, there


def follow(
    there: Server, account_id: UUID, after: int = 0, page: int = 100
) -> AsyncGenerator[Line]:
    return follow_entries(
        there.hub,
        partial(read_lines, there.database),
        account_id,
        after,
        page=page,
        poll_seconds=NEVER_SECONDS,
    )


async def take(feed: AsyncGenerator[Line], count: int) -> list[int]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [(await anext(feed)).sequence for _ in range(count)]


async def deposit_often(ledger: RunningLedger, wallet: Wallet, count: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(ledger.deposit(wallet.account, 1))


@pytest.mark.parametrize("page", [1, 3, 100])
async def test_entries_from_before_and_from_now_on_come_once_and_in_order(
    database_url: TestDatabase, page: int
) -> None:
    async with at_work(database_url) as (ledger, there):
        wallet = await ledger.wallet("alice")
        await deposit_often(ledger, wallet, 10)
        async with contextlib.aclosing(follow(there, wallet.id, page=page)) as feed:
            assert await take(feed, 5) == [1, 2, 3, 4, 5]
            await deposit_often(ledger, wallet, 10)
            assert await take(feed, 15) == list(range(6, 21))
            for sequence in range(21, 31):
                await ledger.deposit(wallet.account, 1)
                assert await take(feed, 1) == [sequence]


async def test_a_feed_resumes_after_any_sequence(database_url: TestDatabase) -> None:
    async with at_work(database_url) as (ledger, there):
        wallet = await ledger.wallet("alice")
        await deposit_often(ledger, wallet, 6)
        for after in range(7):
            async with contextlib.aclosing(follow(there, wallet.id, after)) as feed:
                assert await take(feed, 6 - after) == list(range(after + 1, 7))


async def test_p04_feeds_have_no_gap_and_no_duplicate_while_every_connection_is_ended_again_and_again(
    database_url: TestDatabase,
) -> None:
    """LISTEN, publishing, relay and reading: all are ended by the server during traffic."""
    async with at_work(database_url) as (ledger, there):
        wallet = await ledger.wallet("alice")

        async def harm() -> None:
            while True:
                for kind in ("saldo listen", "saldo publish", "server %"):
                    await terminate(database_url, kind)
                    await asyncio.sleep(0.02)

        async def post() -> None:
            for _ in range(20):
                await deposit_often(ledger, wallet, 5)

        async with (
            contextlib.aclosing(follow(there, wallet.id)) as one,
            contextlib.aclosing(follow(there, wallet.id, 50)) as other,
            running(harm(), post()),
        ):
            assert await take(one, 100) == list(range(1, 101))
            assert await take(other, 50) == list(range(51, 101))


async def test_p11_idle_feeds_hold_no_connection(database_url: TestDatabase) -> None:
    """Two hundred feeds and a pool of four: each waits, none has a connection, and reading goes on."""
    async with at_work(database_url) as (ledger, there):
        wallets = [await ledger.wallet(f"user {number}", funds=1) for number in range(10)]
        feeds = [follow(there, wallets[number % 10].id) for number in range(200)]
        firsts = await asyncio.gather(*(take(feed, 1) for feed in feeds))
        assert firsts == [[1]] * 200
        async with running(*(take(feed, 1) for feed in feeds)):
            await until(lambda: there.hub.reading._value == 4)
            await until(lambda: there.database.engine.pool.checkedout() == 0)  # type: ignore[attr-defined]
            assert await read_lines(there.database, wallets[0].id, 0, 10) != []
        for feed in feeds:
            await feed.aclose()
        assert there.hub.watched_accounts == 0


async def test_closing_a_feed_in_any_way_frees_its_watch(database_url: TestDatabase) -> None:
    async with at_work(database_url) as (ledger, there):
        wallet = await ledger.wallet("alice", funds=1)
        closed, cancelled, failed = (follow(there, wallet.id) for _ in range(3))
        for feed in (closed, cancelled, failed):
            assert await take(feed, 1) == [1]
        await closed.aclose()
        async with running(take(cancelled, 1)):
            await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await failed.athrow(ZeroDivisionError())
        assert there.hub.watched_accounts == 0


async def test_balances_come_first_as_they_are_and_then_as_they_change(
    database_url: TestDatabase,
) -> None:
    async with at_work(database_url) as (ledger, there):
        alice, bob = await ledger.wallet("alice", funds=100), await ledger.wallet("bob")
        async with contextlib.aclosing(balances(there, [alice.id, bob.id])) as feed:
            async with asyncio.timeout(PATIENCE_SECONDS):
                first = {
                    state.account_id: state.available
                    for state in [await anext(feed), await anext(feed)]
                }
                assert first == {alice.id: 100, bob.id: 0}
                await ledger.transfer(alice, bob, 30)
                then = {
                    state.account_id: state.available
                    for state in [await anext(feed), await anext(feed)]
                }
                assert then == {alice.id: 70, bob.id: 30}
        assert there.hub.watched_accounts == 0


def balances(there: Server, account_ids: Sequence[UUID]) -> AsyncGenerator[State]:
    return follow_balances(
        there.hub, partial(read_states, there.database), account_ids, poll_seconds=NEVER_SECONDS
    )


class Accounts:
    """States that a test sets at will, and a hub that it tells of them; everything between them and a feed is real."""

    def __init__(self, *account_ids: UUID) -> None:
        link = BroadcastLink(partial(open_broadcast, "memory://", ""))
        self.hub = Hub(Database("postgresql://nobody@/nowhere"), link)
        self.states = {account_id: State(account_id, 0, 0, 0) for account_id in account_ids}
        self.asked: list[list[UUID]] = []

    async def read(self, account_ids: Collection[UUID]) -> Mapping[UUID, State]:
        self.asked.append(list(account_ids))
        await asyncio.sleep(0)
        return {each: self.states[each] for each in account_ids if each in self.states}

    def set(self, state: State, told: int) -> None:
        self.states[state.account_id] = state
        self.hub._watches.tell(state.account_id, told)

    def follow(self, *account_ids: UUID) -> AsyncGenerator[State]:
        return follow_balances(self.hub, self.read, account_ids, poll_seconds=NEVER_SECONDS)


async def test_held_money_that_changes_without_an_entry_is_shown() -> None:
    """A capture takes money out of the held child; the wallet itself has no new entry, so its sequence stays."""
    wallet = uuid4()
    accounts = Accounts(wallet)
    async with (
        contextlib.aclosing(accounts.follow(wallet)) as feed,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await anext(feed)
        for state, told in (
            (State(wallet, 70, 30, 1), 1),
            (State(wallet, 70, 10, 1), UNTOLD),
            (State(wallet, 70, 0, 1), UNTOLD),
        ):
            accounts.set(state, told)
            assert await anext(feed) == state


async def test_e07_a_slow_reader_of_one_account_gets_its_newest_state_and_no_queue() -> None:
    wallet = uuid4()
    accounts = Accounts(wallet)
    async with (
        contextlib.aclosing(accounts.follow(wallet)) as feed,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await anext(feed)
        for sequence in range(1, 10_001):
            accounts.set(State(wallet, sequence, 0, sequence), sequence)
        assert (await anext(feed)).sequence == 10_000
        accounts.set(State(wallet, 0, 0, 10_001), 10_001)
        assert (await anext(feed)).sequence == 10_001
    assert len(accounts.asked) == 3


async def test_e07_what_moves_while_a_slow_reader_is_busy_is_read_anew_and_nobody_is_left_out() -> (
    None
):
    """Two accounts that never rest: each gets its turn, and each turn shows the newest state.

    Fails with the same account for ever where what is late doesn't come first in the next reading.
    """
    ids = sorted(uuid4() for _ in range(3))
    accounts = Accounts(*ids)
    shown: dict[UUID, int] = dict.fromkeys(ids, 0)
    async with (
        contextlib.aclosing(accounts.follow(*ids)) as feed,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        for sequence in range(1, 31):
            state = await anext(feed)
            assert state == accounts.states[state.account_id]
            shown[state.account_id] += 1
            for account_id in ids[:2]:
                accounts.set(State(account_id, 0, 0, sequence), sequence)
    assert shown[ids[0]] >= 10
    assert shown[ids[1]] >= 10
    assert shown[ids[2]] == 1


async def test_a_state_that_is_read_again_is_not_shown_again() -> None:
    one, other = uuid4(), uuid4()
    accounts = Accounts(one, other)
    async with (
        contextlib.aclosing(accounts.follow(one, other)) as feed,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        assert {(await anext(feed)).account_id, (await anext(feed)).account_id} == {one, other}
        accounts.hub._watches.tell_doubt()
        accounts.set(State(other, 5, 0, 1), UNTOLD)
        assert (await anext(feed)).available == 5


async def test_what_happens_while_a_feed_reads_for_the_first_time_is_not_missed() -> None:
    """Fails where a feed registers with the hub only after it has read."""
    wallet = uuid4()
    accounts = Accounts(wallet)
    lines: list[Line] = []

    def book() -> None:
        lines.append(Line(len(lines) + 1, uuid4()))
        accounts.set(State(wallet, 0, 0, len(lines)), len(lines))

    async def read_lines_slowly(_account_id: UUID, sequence: int, _limit: int) -> Sequence[Line]:
        found = lines[sequence:]
        if not lines:
            book()
        return found

    async def read_states_slowly(account_ids: Collection[UUID]) -> Mapping[UUID, State]:
        found = await accounts.read(account_ids)
        if len(lines) == 1:
            book()
        return found

    entries = follow_entries(accounts.hub, read_lines_slowly, wallet, 0, poll_seconds=NEVER_SECONDS)
    states = follow_balances(accounts.hub, read_states_slowly, [wallet], poll_seconds=NEVER_SECONDS)
    async with contextlib.aclosing(entries), contextlib.aclosing(states):
        assert await take(entries, 1) == [1]
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert [(await anext(states)).sequence for _ in range(2)] == [1, 2]


async def test_an_account_that_nobody_knows_is_passed_over() -> None:
    known, unknown = uuid4(), uuid4()
    accounts = Accounts(known)
    async with (
        contextlib.aclosing(accounts.follow(unknown, known)) as feed,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        assert (await anext(feed)).account_id == known

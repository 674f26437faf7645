"""What breaks around the engine: connections, servers, callers, the queue. Nothing acknowledged is lost, nothing is booked twice."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from app.database import DatabaseUnavailableError
from app.embedded import DATABASE, OWNER, EmbeddedPostgres, RunningPostgres
from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.ledger.model import Transaction
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.posting.decision import Posted
from app.ledger.posting.engine import EngineLimits
from app.ledger.requests import PostingRequest
from app.migrate import upgrade
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import (
    RunningLedger,
    Wallet,
    contents,
    metric,
    new_id,
    new_key,
    posted,
    running_ledger,
    vnd,
)
from tests.support.postgres import TestDatabase, connect, scalar
from tests.support.proxy import Cut, cutting_proxy

ONE_AT_A_TIME = EngineLimits(in_flight=1, deadline_ms=30_000)


@contextlib.asynccontextmanager
async def locked(database: TestDatabase, *wallets: Wallet) -> AsyncGenerator[None]:
    """Hold the rows of accounts in another session, so that a batch that needs them waits."""
    async with connect(database.superuser_url) as connection, connection.transaction():
        await connection.execute(
            "select from account where id = any($1) for update", [one.id for one in wallets]
        )
        yield


async def until_somebody_waits(database: TestDatabase) -> None:
    """Return once a session of the engine waits for a lock."""
    async with connect(database.superuser_url) as connection:
        while not await connection.fetchval(  # noqa: ASYNC110 - no event tells what another process does
            """
            select exists (
              select from pg_stat_activity
              where datname = current_database() and application_name = 'saldo-postings'
                and wait_event_type = 'Lock'
            )
            """
        ):
            await asyncio.sleep(0)


async def key_of(books: RunningLedger, wallet: Wallet, key: str) -> Transaction | None:
    return await books.reader.transaction_by_key(wallet.owner, key)


# ---------------------------------------------------------------- the wire


@pytest.mark.parametrize(
    ("cut", "replayed"), [(Cut.BEFORE_COMMIT, False), (Cut.AFTER_COMMIT, True)]
)
async def test_a_wire_that_breaks_around_the_commit_books_once(
    audited: TestDatabase, cut: Cut, *, replayed: bool
) -> None:
    """The engine can't know whether the COMMIT took place. It asks again, and its own keys tell."""
    async with (
        cutting_proxy(audited.runtime_url) as proxy,
        running_ledger(proxy.url) as books,
    ):
        a, b = await books.wallet("alice", 1_000), await books.wallet("bob")
        for number in range(1, 21):
            before = proxy.cuts
            proxy.cut = cut
            answer = posted(await books.transfer(a, b, 1))
            assert proxy.cuts == before + 1
            assert answer.replayed is replayed
            assert await books.available(b) == number
            assert [entry.balance_after for entry in answer.entries] == [1_000 - number]


async def test_a_wire_that_breaks_under_a_batch_books_every_member_once(
    audited: TestDatabase,
) -> None:
    async with (
        cutting_proxy(audited.runtime_url) as proxy,
        running_ledger(proxy.url, ONE_AT_A_TIME) as books,
    ):
        a, b = await books.wallet("alice", 1_000), await books.wallet("bob")
        proxy.cut = Cut.AFTER_COMMIT
        answers = await asyncio.gather(*(books.transfer(a, b, 1) for _ in range(100)))

        assert proxy.cuts == 1
        assert len({posted(answer).transaction.id for answer in answers}) == 100
        assert await books.available(b) == 100


@pytest.mark.timeout(120)
async def test_sessions_that_are_ended_lose_nothing_and_book_nothing_twice(
    audited: TestDatabase,
) -> None:
    async with running_ledger(audited.runtime_url) as books:
        a, b = await books.wallet("alice", 10_000), await books.wallet("bob")
        keys = [[new_key() for _ in range(40)] for _ in range(25)]

        answers: list[Posted] = []

        async def one_after_another(mine: list[str]) -> None:
            for key in mine:
                answer = posted(await books.transfer(a, b, 1, key=key))
                answers.append(answer)

        load = asyncio.gather(*(one_after_another(mine) for mine in keys))
        async with connect(audited.superuser_url) as connection:
            for acknowledged in range(50, 550, 50):
                while len(answers) < acknowledged:  # noqa: ASYNC110 - any of many tasks may be next
                    await asyncio.sleep(0.005)
                assert await connection.fetchval(
                    """
                    select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
                    where datname = current_database() and application_name = 'saldo-postings'
                    """
                )
        await load

        assert len({answer.transaction.id for answer in answers}) == 1_000
        for row in keys:
            for key in row:
                assert await key_of(books, a, key) is not None
        assert await books.available(b) == 1_000
        assert await scalar(audited.superuser_url, "select count(*) from journal") == 1 + 1_000


async def test_a_deadlock_with_a_stranger_is_tried_again(audited: TestDatabase) -> None:
    """Somebody who locks the rows in another order than the engine; PostgreSQL ends one of the two."""
    async with running_ledger(audited.runtime_url) as books:
        a, b = await books.wallet("alice", 1_000), await books.wallet("bob")
        first, last = sorted([a, b], key=lambda wallet: wallet.id)
        retries = metric("saldo_posting_retries_total", reason="40P01")
        async with connect(audited.superuser_url) as stranger, stranger.transaction():
            # The stranger would rather wait for ever; the engine is the one that looks for deadlocks.
            await stranger.execute("set local deadlock_timeout = '1h'")
            await stranger.execute("select from account where id = $1 for update", last.id)
            transfer = asyncio.ensure_future(books.transfer(a, b, 10))
            await until_somebody_waits(audited)
            await stranger.execute("select from account where id = $1 for update", first.id)
        answer = posted(await transfer)

        assert not answer.replayed
        assert metric("saldo_posting_retries_total", reason="40P01") == retries + 1
        assert await books.available(b) == 10


# ---------------------------------------------------------------- the server


@pytest.fixture(scope="module")
def own_server_directory() -> Generator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="saldo-"))
    yield directory
    shutil.rmtree(directory)


@contextlib.asynccontextmanager
async def server(directory: Path) -> AsyncGenerator[RunningPostgres]:
    """Run a server that this test alone uses, so that it may stop it."""
    use = EmbeddedPostgres(directory, fsync=False)
    running = await asyncio.to_thread(use.start)
    try:
        yield running
    finally:
        await asyncio.to_thread(use.stop)


@pytest.mark.timeout(120)
async def test_l08_a_server_that_stops_and_starts_again(own_server_directory: Path) -> None:
    """First in order, with a request while it is away; then at once, under load, as in a crash."""
    limits = EngineLimits(deadline_ms=200, retry_seconds=0.2)
    async with server(own_server_directory) as running:
        await asyncio.to_thread(upgrade, running.url(DATABASE, OWNER))
        url = running.url(DATABASE)
        superuser_url = running.url(DATABASE, "saldo_superuser")
        async with running_ledger(url, limits) as books:
            a, b = await books.wallet("alice", 10_000), await books.wallet("bob")
            await asyncio.to_thread(_stop, running, signal.SIGINT)

            with pytest.raises(LedgerUnavailableError):
                await books.transfer(a, b, 1, key="M")

            async with server(own_server_directory) as again:
                answer = posted(await books.transfer(a, b, 1, key="M"))
                assert not answer.replayed

                acknowledged: set[str] = set()
                unknown: set[str] = set()

                async def keep_paying() -> None:
                    while not unknown:
                        key = new_key()
                        try:
                            posted(await books.transfer(a, b, 1, key=key))
                        except LedgerUnavailableError:
                            unknown.add(key)
                        else:
                            acknowledged.add(key)
                            if len(acknowledged) == 200:
                                os.kill(again.process_id, signal.SIGQUIT)

                await asyncio.gather(*(keep_paying() for _ in range(20)))
                await asyncio.to_thread(_wait_for_end, again)

                async with server(own_server_directory):
                    with contextlib.suppress(
                        DatabaseUnavailableError
                    ):  # the pool's old connections
                        await books.available(a)
                    for key in acknowledged:
                        assert await key_of(books, a, key) is not None
                    for key in unknown:
                        posted(await books.transfer(a, b, 1, key=key))
                    booked = 1 + len(acknowledged) + len(unknown)
                    assert await books.available(b) == booked
                    assert await books.available(a) == 10_000 - booked
                    await assert_books_are_right(superuser_url)


def _stop(running: RunningPostgres, how: signal.Signals) -> None:
    os.kill(running.process_id, how)
    _wait_for_end(running)


def _wait_for_end(running: RunningPostgres) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(running.process_id).wait(30)


async def test_a_replay_whose_answer_cannot_be_read_is_told_as_every_other_failure(
    audited: TestDatabase,
) -> None:
    """A replay reads what was answered first, on a connection that a restart of the server may have broken meanwhile."""
    async with running_ledger(audited.runtime_url) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        first = posted(await books.transfer(a, b, 1, key="k"))
        await books.available(a)
        await scalar(
            audited.superuser_url,
            """
            select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and application_name = 'saldo-reads'
            """,
        )
        try:
            answer = posted(await books.transfer(a, b, 1, key="k"))
        except LedgerUnavailableError:
            answer = posted(await books.transfer(a, b, 1, key="k"))
        assert answer.transaction == first.transaction


# ---------------------------------------------------------------- the queue


async def test_a_full_queue_turns_away_at_once(audited: TestDatabase) -> None:
    limits = EngineLimits(in_flight=1, queue_max=3, deadline_ms=30_000)
    async with running_ledger(audited.runtime_url, limits) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        turned_away = metric("saldo_postings_turned_away_total", reason="queue_full")
        async with locked(audited, a):
            under_way = asyncio.ensure_future(books.transfer(a, b, 1))
            await until_somebody_waits(audited)
            queued = [asyncio.ensure_future(books.transfer(a, b, 10)) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(LedgerUnavailableError):
                await books.transfer(a, b, 50, key="k")
            assert (
                metric("saldo_postings_turned_away_total", reason="queue_full") == turned_away + 1
            )
        for answer in await asyncio.gather(under_way, *queued):
            assert isinstance(answer, Posted)
        assert await books.available(b) == 31
        assert await key_of(books, a, "k") is None
        assert not posted(await books.transfer(a, b, 50, key="k")).replayed


async def test_who_would_wait_too_long_is_told_so_and_nothing_is_booked(
    audited: TestDatabase,
) -> None:
    limits = EngineLimits(in_flight=1, deadline_ms=100)
    async with running_ledger(audited.runtime_url, limits) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        async with locked(audited, a):
            under_way = asyncio.ensure_future(books.transfer(a, b, 1))
            await until_somebody_waits(audited)
            with pytest.raises(LedgerUnavailableError):
                await books.transfer(a, b, 10, key="late")
        assert isinstance(await under_way, Posted)
        assert await books.available(b) == 1
        assert await key_of(books, a, "late") is None
        assert not posted(await books.transfer(a, b, 10, key="late")).replayed
        assert posted(await books.transfer(a, b, 10, key="late")).replayed
        assert await books.available(b) == 11


async def test_a_row_that_is_locked_for_too_long_is_no_incident(audited: TestDatabase) -> None:
    """Somebody else's long lock is no fault of the posting: it may be sent again, and nothing is counted as an incident."""
    limits = EngineLimits(deadline_ms=500, retry_seconds=0.5)
    async with running_ledger(audited.runtime_url, limits, statement_timeout_ms=200) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        incidents = metric("saldo_constraint_incidents_total", constraint="none")
        before = await contents(audited.superuser_url)
        async with locked(audited, a):
            with pytest.raises(LedgerUnavailableError):
                await books.transfer(a, b, 10, key="k")
        assert metric("saldo_constraint_incidents_total", constraint="none") == incidents
        assert await contents(audited.superuser_url) == before
        assert not posted(await books.transfer(a, b, 10, key="k")).replayed


async def test_a_caller_that_goes_away_takes_nothing_with_it(audited: TestDatabase) -> None:
    async with running_ledger(audited.runtime_url, ONE_AT_A_TIME) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        async with locked(audited, a):
            under_way = asyncio.ensure_future(books.transfer(a, b, 1, key="under way"))
            await until_somebody_waits(audited)
            queued = asyncio.ensure_future(books.transfer(a, b, 10, key="queued"))
            neighbour = asyncio.ensure_future(books.transfer(a, b, 50, key="neighbour"))
            await asyncio.sleep(0)
            under_way.cancel()
            queued.cancel()
            await asyncio.wait([under_way, queued])
        assert isinstance(await neighbour, Posted)
        assert (under_way.cancelled(), queued.cancelled()) == (True, True)
        # The neighbour shared the batch of `queued`, and came after `under way`.
        assert posted(await books.transfer(a, b, 1, key="under way")).replayed
        assert posted(await books.transfer(a, b, 10, key="queued")).replayed
        assert await books.available(b) == 61


# ---------------------------------------------------------------- the end


async def test_closing_posts_what_is_queued_and_takes_no_more(audited: TestDatabase) -> None:
    async with running_ledger(audited.runtime_url, ONE_AT_A_TIME) as books:
        a, b = await books.wallet("alice", 1_000), await books.wallet("bob")
        async with locked(audited, a):
            queued = [asyncio.ensure_future(books.transfer(a, b, 1)) for _ in range(600)]
            await until_somebody_waits(audited)
            books.engine.close()
            with pytest.raises(LedgerUnavailableError):
                await books.transfer(a, b, 1)
        await books.working
        assert all(isinstance(answer, Posted) for answer in await asyncio.gather(*queued))
        assert await books.available(b) == 600


async def test_an_idle_engine_closes_at_once(audited: TestDatabase) -> None:
    async with running_ledger(audited.runtime_url) as books:
        books.engine.close()
        await asyncio.wait_for(books.working, 10)


async def test_an_engine_that_is_cancelled_leaves_nobody_waiting(audited: TestDatabase) -> None:
    async with running_ledger(audited.runtime_url, ONE_AT_A_TIME) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        async with locked(audited, a):
            under_way = asyncio.ensure_future(books.transfer(a, b, 1))
            await until_somebody_waits(audited)
            queued = asyncio.ensure_future(books.transfer(a, b, 10))
            await asyncio.sleep(0)
            books.working.cancel()
            done, waiting = await asyncio.wait([under_way, queued], timeout=3)
            for one in waiting:
                one.cancel()
        assert waiting == set()
        assert {type(one.exception()) for one in done} == {LedgerUnavailableError}
        assert await books.available(b) == 0


async def test_what_only_python_refuses_stops_nobody_else(audited: TestDatabase) -> None:
    """A request that can't be written down at all, which no command would let through, hurts itself alone."""
    async with running_ledger(audited.runtime_url) as books:
        a, b = await books.wallet("alice", 100), await books.wallet("bob")
        good = transfer(TransferCommand("poison", a.id, b.id, vnd(1)), "alice", new_id())
        assert isinstance(good, PostingRequest)
        poison = replace(good, description="\ud800")
        answers = await asyncio.wait_for(
            asyncio.gather(
                books.transfer(a, b, 10),
                books.engine.post((poison,)),
                books.transfer(a, b, 10),
                return_exceptions=True,
            ),
            timeout=20,
        )

        assert isinstance(answers[1], LedgerIncidentError | LedgerUnavailableError)
        assert isinstance(answers[0], Posted)
        assert isinstance(answers[2], Posted)
        assert await books.available(b) == 20

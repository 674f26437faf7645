"""Histories of hot accounts while postings are under way: what is committed out of order is never missed, and shown in order."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import Database
from app.ledger.model import Account, BalanceTracking, Entry
from app.ledger.movements.deposits import DepositCommand
from app.ledger.pages import EntryFilter, PageRequest
from app.ledger.posting.decision import Posted
from app.ledger.reader import Reader
from app.ledger.reading import entries, histories
from app.ledger.service import PostingAnswer
from tests.support.ledger import OPERATOR, RunningLedger, new_key, running_ledger, vnd
from tests.support.postgres import TestDatabase, connect

WHOLE: PageRequest[int] = PageRequest(100)

EVER_SECONDS = 30.0

KEY_IS_TAKEN = """
insert into idempotency_key (caller, key, operation, fingerprint, fields, transaction_id)
values ($1, $2, 'deposit', '', '{}', gen_random_uuid())
"""

SOMEBODY_WAITS = """
select exists (
  select from pg_stat_activity
  where datname = current_database() and application_name = 'saldo-postings' and wait_event_type = 'Lock'
)
"""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A posting that has taken its stamp and can't end until it is let go."""

    answer: "asyncio.Future[PostingAnswer]"
    let_go: Callable[[], Awaitable[None]]


@contextlib.asynccontextmanager
async def stuck_deposit(
    books: RunningLedger, account: Account, bank: Account, amount: int
) -> AsyncGenerator[Stuck]:
    """Begin a deposit whose key somebody else seems to book, and hold it there."""
    key = new_key()
    command = DepositCommand(key, account.id, bank.id, vnd(amount))
    async with connect(books.url) as connection, connect(books.url) as watch:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(KEY_IS_TAKEN, OPERATOR.subject, key)
        answer = asyncio.ensure_future(
            books.ledger.deposit(OPERATOR, command, default_clearing=False)
        )
        while not await watch.fetchval(SOMEBODY_WAITS):  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0)
        held = True

        async def let_go() -> None:
            nonlocal held
            if held:
                held = False
                await transaction.rollback()

        try:
            yield Stuck(answer, let_go)
        finally:
            await let_go()
            await answer


@pytest.fixture(params=[BalanceTracking.STRIPED, BalanceTracking.DERIVED])
async def hot(request: pytest.FixtureRequest, books: RunningLedger) -> Account:
    """Open an account of each kind that is numbered by stamps, with one entry in it."""
    more: dict[str, Any] = (
        {"stripes": 2} if request.param is BalanceTracking.STRIPED else {"allow_negative": True}
    )
    account = await books.open(owner="shop", tracking=request.param, **more)
    await books.deposit(account, 1)
    return account


@pytest.fixture
async def banks(books: RunningLedger) -> tuple[Account, Account]:
    """Open two accounts to pay from, so that one deposit doesn't wait for the other."""
    first, second = await books.clearing(), await books.clearing()
    return first, second


async def amounts(books: RunningLedger, account: Account) -> list[int]:
    page = await books.reader.entry_page(account, EntryFilter(), WHOLE, newest_first=False)
    return [entry.amount for entry in page.items]


async def deposit_beside(
    books: RunningLedger, account: Account, bank: Account, amount: int
) -> Posted:
    """Make a deposit while another is stuck; where that one has the stripe locked, on another."""
    async with running_ledger(books.url) as other:
        return await other.deposit(account, amount, bank)


@pytest.fixture
def other_stripe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each credit of a striped account go to the next of its two stripes."""
    turns = iter(range(1_000))

    def choose(stripes: tuple[UUID, ...]) -> UUID:
        return stripes[next(turns) % len(stripes)]

    monkeypatch.setattr(random, "choice", choose)


@pytest.mark.usefixtures("other_stripe")
async def test_a_history_ends_before_what_may_still_turn_up(
    books: RunningLedger,
    hot: Account,
    banks: tuple[Account, Account],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A deposit of 20 is committed while one of 300 that took its stamp earlier is not."""
    monkeypatch.setattr(histories, "PATIENCE_SECONDS", 0.0)
    ask = books.reader
    async with stuck_deposit(books, hot, banks[0], 300) as stuck:
        place = await ask.highest_sequence(hot)
        late = await deposit_beside(books, hot, banks[1], 20)
        (line,) = [entry for entry in late.entries if entry.account.id == hot.id]

        assert await books.available(hot) == 21, "what is spent now knows no waiting"
        assert await amounts(books, hot) == [1]
        assert await ask.count_entries(hot, EntryFilter()) == 1
        assert await ask.count_entries(hot, EntryFilter(smallest=20)) == 0
        assert await ask.entries_after(hot, place, 10) == ()
        assert await ask.entry(OPERATOR, hot.id, line.sequence) is None
        assert line.balance_after is None, "another posting is between it and the past"
        assert await ask.highest_sequence(hot) < line.sequence

        await stuck.let_go()
        assert isinstance(await stuck.answer, Posted)

    assert await amounts(books, hot) == [1, 300, 20]
    assert [entry.amount for entry in await ask.entries_after(hot, place, 10)] == [300, 20]
    assert await ask.count_entries(hot, EntryFilter()) == 3
    found = await ask.entry(OPERATOR, hot.id, line.sequence)
    assert found is not None
    assert found.amount == 20
    if hot.tracking is BalanceTracking.STRIPED:
        assert found.balance_after == 321
    highest = await ask.highest_sequence(hot)
    assert await ask.entries_after(hot, highest, 10) == ()
    await books.deposit(hot, 4_000)
    assert [entry.amount for entry in await ask.entries_after(hot, highest, 10)] == [4_000]


@pytest.mark.usefixtures("other_stripe")
async def test_who_asks_waits_for_what_is_under_way_and_holds_no_connection(
    books: RunningLedger,
    hot: Account,
    banks: tuple[Account, Account],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histories, "PATIENCE_SECONDS", EVER_SECONDS)
    looks = asyncio.Semaphore(0)
    look = entries.settled_stamp

    async def noted_look(connection: AsyncConnection) -> tuple[int, int]:
        looks.release()
        return await look(connection)

    monkeypatch.setattr(entries, "settled_stamp", noted_look)
    only_one = Database(books.url, pool_size=1, pool_timeout_ms=10_000)
    ask = Reader(only_one)
    async with stuck_deposit(books, hot, banks[0], 300) as stuck:
        waiting = asyncio.ensure_future(
            ask.entry_page(hot, EntryFilter(), WHOLE, newest_first=True)
        )
        for _ in range(3):
            await looks.acquire()
        assert (await ask.balances([hot.id]))[hot.id].available == 1
        assert not waiting.done()
        await stuck.let_go()
        page = await waiting
    await only_one.close()

    assert [entry.amount for entry in page.items] == [300, 1]


@pytest.mark.usefixtures("other_stripe")
async def test_a_replay_and_the_first_answer_tell_the_same_balances(
    books: RunningLedger,
) -> None:
    account = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=2)
    for amount in (3, 4):
        await books.deposit(account, amount)
    command = DepositCommand(new_key(), account.id, None, vnd(5))
    answers: list[PostingAnswer] = []
    for _ in range(2):
        answers.append(await books.ledger.deposit(OPERATOR, command, default_clearing=True))
        await books.deposit(account, 100)

    first, second = answers
    assert isinstance(first, Posted)
    assert isinstance(second, Posted)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.entries == second.entries
    assert [entry.balance_after for entry in first.entries if entry.account.hot] == [12]


async def test_lines_of_an_account_that_is_not_hot_wait_for_nothing(
    books: RunningLedger,
    hot: Account,
    banks: tuple[Account, Account],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histories, "PATIENCE_SECONDS", EVER_SECONDS)
    alice = await books.wallet("alice", 9)
    async with stuck_deposit(books, hot, banks[0], 300):
        (line,) = await books.reader.entries_after(alice.account, 0, 10)
        assert line.amount == 9
        assert await books.reader.count_entries(alice.account, EntryFilter()) == 1
        assert await books.reader.highest_sequence(alice.account) == 1


@pytest.mark.timeout(120)
async def test_f02_who_follows_a_hot_account_meets_every_entry_once_and_in_order(
    audited: TestDatabase,
) -> None:
    """Two processes' worth of engines post to the same few stripes, while others follow with pages of odd sizes."""
    async with (
        running_ledger(audited.runtime_url) as one,
        running_ledger(audited.runtime_url) as two,
    ):
        shop = await one.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=3)
        fees = await one.open(tracking=BalanceTracking.DERIVED, allow_negative=True)
        accounts = (shop, fees)
        posted = 120

        async def pay(books: RunningLedger, count: int) -> None:
            for number in range(count):
                await books.deposit(shop, number % 9 + 1, fees)

        async def follow(account: Account, size: int) -> list[Entry]:
            met: list[Entry] = []
            while len(met) < posted:
                last = met[-1].sequence if met else 0
                entries = await one.reader.entries_after(account, last, size)
                met += entries
                if not entries:
                    await asyncio.sleep(0.01)  # a feed would wait to be woken
            return met

        async with asyncio.TaskGroup() as tasks:
            feeds = [
                (account, tasks.create_task(follow(account, size)))
                for account in accounts
                for size in (7, 100)
            ]
            for books in (one, two):
                for _ in range(4):
                    tasks.create_task(pay(books, posted // 8))
        whole = {account.id: await follow(account, 100) for account in accounts}
        for account, feed in feeds:
            assert feed.result() == whole[account.id]
        balances = [entry.balance_after for entry in whole[shop.id]]
        assert balances == list(accumulate(entry.amount for entry in whole[shop.id]))
        assert balances[-1] == await one.available(shop) == -await one.available(fees)

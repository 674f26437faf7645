"""History: pages in both directions with every filter, counts, and the balance at any instant."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import accumulate
from typing import Any

import pytest

from app.embedded import RunningPostgres
from app.ledger import pages
from app.ledger.model import Balance, BalanceTracking, Direction, Entry
from app.ledger.pages import EntryFilter, Page, PageRequest
from app.ledger.posting.engine import EngineLimits
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import (
    RunningLedger,
    Wallet,
    contents,
    posted,
    running_ledger,
    wallet_user,
)
from tests.support.postgres import TestDatabase, connect

DAY = timedelta(days=1)


TRACKINGS: dict[BalanceTracking, dict[str, Any]] = {
    BalanceTracking.TRACKED: {},
    BalanceTracking.STRIPED: {"stripes": 3},
    BalanceTracking.DERIVED: {"allow_negative": True},
}


@dataclass(frozen=True, slots=True)
class History:
    """A wallet with some forty entries of both directions and two types, and all of them as a list, oldest first."""

    books: RunningLedger
    wallet: Wallet
    entries: Sequence[Entry]
    types: Sequence[str]
    """The type of the transaction of each entry."""

    def balance_at(self, instant: datetime) -> int:
        return sum(entry.amount for entry in self.entries if entry.posted_at <= instant)


@pytest.fixture(scope="module", params=TRACKINGS)
async def history(
    request: pytest.FixtureRequest, postgres: RunningPostgres, template_database: str
) -> AsyncGenerator[History]:
    """Share one history of each kind of account among all tests that only read it."""
    tracking: BalanceTracking = request.param
    name = f"history_{tracking.lower()}"
    postgres.create_database(name, template_database)
    database = TestDatabase.of(postgres, name)
    async with running_ledger(database.runtime_url) as books:
        account = await books.open(owner="alice", tracking=tracking, **TRACKINGS[tracking])
        wallet, other = Wallet(account, wallet_user("alice")), await books.wallet("bob", 500)
        await books.deposit(account, 500)
        entries: list[Entry] = []
        types: list[str] = []

        async def note(*lines: Entry) -> None:
            newest = await books.reader.entries_after(
                account, entries[-1].sequence if entries else 0, 100
            )
            assert not lines or sorted(lines, key=lambda line: line.sequence) == list(newest)
            entries.extend(newest)
            found = await books.reader.transactions(
                wallet.owner, [line.transaction_id for line in newest]
            )
            types.extend(found[line.transaction_id].type for line in newest)

        await note()
        chance = random.Random(7)
        for _ in range(40):
            match chance.randrange(3):
                case 0:
                    sent = posted(await books.transfer(wallet, other, chance.randint(1, 12)))
                    await note(*sent.entries)
                case 1:
                    await books.transfer(other, wallet, chance.randint(1, 12))
                    await note()
                case _:
                    await books.deposit(account, chance.randint(1, 12))
                    await note()
        yield History(books, wallet, entries, types)
    await assert_books_are_right(database.superuser_url)
    postgres.drop_database(name)


def test_the_history_has_everything_that_the_filters_tell_apart(history: History) -> None:
    assert {entry.direction for entry in history.entries} == set(Direction)
    assert set(history.types) == {"deposit", "transfer"}
    assert len({entry.posted_at for entry in history.entries}) == 41


def test_every_line_tells_what_its_account_has_after_it(history: History) -> None:
    after = 0
    for entry in history.entries:
        after += entry.amount
        derived = entry.account.tracking is BalanceTracking.DERIVED
        assert entry.balance_after == (None if derived else after)
        assert entry.account == history.wallet.account


FILTERS: dict[str, Callable[[History], tuple[EntryFilter, Callable[[int], bool]]]] = {
    "all": lambda _: (EntryFilter(), lambda _: True),
    "one type": lambda h: (EntryFilter(types=("deposit",)), lambda i: h.types[i] == "deposit"),
    "two types": lambda _: (EntryFilter(types=("deposit", "transfer")), lambda _: True),
    "no type": lambda _: (EntryFilter(types=()), lambda _: False),
    "unknown type": lambda _: (EntryFilter(types=("refund",)), lambda _: False),
    "debits": lambda h: (
        EntryFilter(direction=Direction.DEBIT),
        lambda i: h.entries[i].amount < 0,
    ),
    "credits": lambda h: (
        EntryFilter(direction=Direction.CREDIT),
        lambda i: h.entries[i].amount > 0,
    ),
    "from an instant, inclusive": lambda h: (
        EntryFilter(posted_from=h.entries[11].posted_at),
        lambda i: i >= 11,
    ),
    "before an instant, exclusive": lambda h: (
        EntryFilter(posted_before=h.entries[11].posted_at),
        lambda i: i < 11,
    ),
    "smallest, inclusive": lambda h: (
        EntryFilter(smallest=6),
        lambda i: abs(h.entries[i].amount) >= 6,
    ),
    "largest, inclusive": lambda h: (
        EntryFilter(largest=6),
        lambda i: abs(h.entries[i].amount) <= 6,
    ),
    "everything together": lambda h: (
        EntryFilter(
            types=("transfer",),
            direction=Direction.DEBIT,
            posted_from=h.entries[3].posted_at,
            posted_before=h.entries[35].posted_at,
            smallest=2,
            largest=10,
        ),
        lambda i: (
            3 <= i < 35
            and h.types[i] == "transfer"
            and h.entries[i].amount < 0
            and 2 <= -h.entries[i].amount <= 10
        ),
    ),
}


def expected_page(
    matching: Sequence[Entry], page: PageRequest[int], *, newest_first: bool
) -> Page[Entry]:
    """Cut a page out of the whole list, in the plainest way."""
    ordered = list(reversed(matching)) if newest_first else list(matching)
    place = -1 if newest_first else 1
    after, before = page.after, page.before
    inside = [
        entry
        for entry in ordered
        if (after is None or place * entry.sequence > place * after)
        and (before is None or place * entry.sequence < place * before)
    ]
    if page.backward:
        items = inside[max(len(inside) - page.limit, 0) :]
        return Page(
            tuple(items),
            has_next=before is not None,
            has_previous=len(inside) > page.limit or after is not None,
        )
    return Page(
        tuple(inside[: page.limit]),
        has_next=len(inside) > page.limit or before is not None,
        has_previous=after is not None,
    )


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("name", FILTERS)
async def test_a_page_is_the_same_part_of_the_list_in_every_direction_and_order(
    history: History, name: str, *, newest_first: bool
) -> None:
    wanted, matches = FILTERS[name](history)
    matching = [entry for index, entry in enumerate(history.entries) if matches(index)]
    first, middle, last = (history.entries[place].sequence for place in (0, 11, -1))
    bounds = [None, 0, first, middle, last, last + 1]
    requests = [
        PageRequest(limit, after, before, backward)
        for limit in (1, 7, len(matching) or 1, 100)
        for backward in (False, True)
        for after, before in [
            (None, None),
            *((b, None) for b in bounds),
            *((None, b) for b in bounds),
        ]
    ]
    low, high = history.entries[9].sequence, history.entries[19].sequence
    requests += [
        PageRequest(5, high, low),
        PageRequest(5, low, high),
        PageRequest(3, low, high, backward=True),
    ]
    for request in requests:
        page = await history.books.reader.entry_page(
            history.wallet.account, wanted, request, newest_first=newest_first
        )
        assert page == expected_page(matching, request, newest_first=newest_first), request


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("limit", [1, 4, 41])
async def test_walking_from_page_to_page_meets_every_entry_once(
    history: History, limit: int, *, backward: bool, newest_first: bool
) -> None:
    met: list[Entry] = []
    request: PageRequest[int] = PageRequest(limit, backward=backward)
    while True:
        page = await history.books.reader.entry_page(
            history.wallet.account, EntryFilter(), request, newest_first=newest_first
        )
        met = [*page.items, *met] if backward else [*met, *page.items]
        if not (page.has_previous if backward else page.has_next):
            break
        request = (
            PageRequest(limit, before=page.items[0].sequence, backward=True)
            if backward
            else PageRequest(limit, after=page.items[-1].sequence)
        )
    assert met == (list(reversed(history.entries)) if newest_first else list(history.entries))


@pytest.mark.parametrize("name", FILTERS)
async def test_a_count_is_that_of_the_list(history: History, name: str) -> None:
    wanted, matches = FILTERS[name](history)
    expected = sum(matches(index) for index in range(len(history.entries)))

    assert await history.books.reader.count_entries(history.wallet.account, wanted) == expected


async def test_a_long_list_is_counted_only_where_nothing_has_to_be_read(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = len(history.entries)
    account, ledger = history.wallet.account, history.books.reader
    debits = EntryFilter(direction=Direction.DEBIT)

    monkeypatch.setattr(pages, "COUNT_BOUND", total)
    assert await ledger.count_entries(account, debits) is not None
    monkeypatch.setattr(pages, "COUNT_BOUND", total - 1)
    assert await ledger.count_entries(account, debits) is None
    assert await ledger.count_entries(account, EntryFilter()) == (None if account.hot else total)


async def test_one_entry_is_found_by_its_sequence(history: History) -> None:
    ledger, wallet = history.books.reader, history.wallet

    for entry in (history.entries[place] for place in (0, 11, -1)):
        assert await ledger.entry(wallet.owner, wallet.id, entry.sequence) == entry
    for sequence in (0, -1, history.entries[-1].sequence + 1):
        assert await ledger.entry(wallet.owner, wallet.id, sequence) is None


async def test_a_feed_goes_on_after_any_sequence(history: History) -> None:
    ledger, account, entries = history.books.reader, history.wallet.account, history.entries

    assert list(await ledger.entries_after(account, 0, 100)) == list(entries)
    assert list(await ledger.entries_after(account, entries[11].sequence, 5)) == entries[12:17]
    assert list(await ledger.entries_after(account, entries[-1].sequence, 5)) == []


async def test_a_feed_that_wants_nothing_of_the_past_begins_behind_it(history: History) -> None:
    ledger, account = history.books.reader, history.wallet.account

    highest = await ledger.highest_sequence(account)

    assert highest >= history.entries[-1].sequence
    if not account.hot:
        assert highest == len(history.entries)


async def test_what_moved_an_account_last_is_told(history: History) -> None:
    assert await history.books.reader.last_transactions([history.wallet.id]) == {
        history.wallet.id: history.entries[-1].transaction_id
    }


# ---------------------------------------------------------------- balances


async def test_a_balance_is_the_sum_of_the_entries(history: History) -> None:
    wallet, total = history.wallet, len(history.entries)

    balance = (await history.books.reader.balances([wallet.id]))[wallet.id]

    assert balance == Balance(
        wallet.id,
        available=sum(entry.amount for entry in history.entries),
        held=0,
        sequence=0 if wallet.account.hot else total,
    )


async def test_l16_a_balance_at_an_instant_is_that_after_the_last_entry_until_then(
    history: History,
) -> None:
    ledger, wallet = history.books.reader, history.wallet

    async def at(instant: datetime) -> int:
        return (await ledger.balances_at([wallet.id], instant))[wallet.id]

    tick = timedelta(microseconds=1)
    instants = [entry.posted_at for entry in history.entries]
    for instant in instants:
        for moment in (instant - tick, instant, instant + tick):
            assert await at(moment) == history.balance_at(moment)
    assert await at(instants[0] - tick) == 0
    assert await at(instants[0]) == 500
    assert await at(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert await at(instants[-1] + 1_000 * DAY) == history.balance_at(instants[-1])
    there = timezone(timedelta(hours=-3))
    assert await at(instants[20].astimezone(there)) == history.balance_at(instants[20])


async def test_an_account_without_entries_had_nothing_at_any_time(books: RunningLedger) -> None:
    wallet = await books.wallet("alice")
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert await books.reader.balances_at([wallet.id], now) == {wallet.id: 0}
    assert await books.reader.balances_at([], now) == {}


async def test_l16_entries_of_one_batch_keep_their_order_though_they_share_their_instant(
    audited: TestDatabase,
) -> None:
    async with running_ledger(
        audited.runtime_url, EngineLimits(in_flight=1, deadline_ms=30_000)
    ) as books:
        a, b = await books.wallet("alice", 50_000), await books.wallet("bob")
        answers = await asyncio.gather(*(books.transfer(a, b, n) for n in range(1, 201)))

        entries = [posted(answer).entries[0] for answer in answers]
        (instant,) = {entry.posted_at for entry in entries}
        for newest_first in (False, True):
            met: list[Entry] = []
            request: PageRequest[int] = PageRequest(17)
            while True:
                page = await books.reader.entry_page(
                    a.account, EntryFilter(), request, newest_first=newest_first
                )
                met.extend(page.items)
                if not page.has_next:
                    break
                request = PageRequest(17, after=page.items[-1].sequence)
            chain = list(reversed(met)) if newest_first else met
            assert [entry.sequence for entry in chain] == list(range(1, 202))
            assert chain[1:] == entries
            assert [entry.balance_after for entry in chain] == list(
                accumulate(entry.amount for entry in chain)
            )
        at = books.reader.balances_at
        assert (await at([a.id], instant))[a.id] == entries[-1].balance_after
        just_before = instant - timedelta(microseconds=1)
        assert (await at([a.id, b.id], just_before)) == {a.id: 50_000, b.id: 0}


async def test_l16_an_earlier_effective_time_shifts_no_balance(books: RunningLedger) -> None:
    """Balances are those that were posted; when a fact happened is told beside and orders nothing."""
    wallet = await books.wallet("alice", 100)
    (first,) = await books.reader.entries_after(wallet.account, 0, 1)
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    answer = await books.deposit(wallet.account, 5, effective_at=long_ago)

    assert answer.transaction.effective_at == long_ago
    assert answer.transaction.posted_at > first.posted_at
    at = books.reader.balances_at
    assert (await at([wallet.id], long_ago + DAY))[wallet.id] == 0
    assert (await at([wallet.id], first.posted_at))[wallet.id] == 100
    assert (await at([wallet.id], answer.transaction.posted_at))[wallet.id] == 105
    history = await books.reader.entries_after(wallet.account, 0, 10)
    assert [entry.balance_after for entry in history] == [100, 105]


async def test_posting_times_never_go_back_though_the_clock_has(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """The last entry lies in the future, as after a jump of the clock: what follows shares its instant and its order."""
    a, b = await books.wallet("alice", 100), await books.wallet("bob")
    async with connect(audited.superuser_url) as connection, connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        future = await connection.fetchval(
            "update account set posted_at = posted_at + interval '1 day' where id = $1 returning posted_at",
            a.id,
        )
        await connection.execute(
            "update entry set posted_at = $2 where account_id = $1", a.id, future
        )

    answers = [posted(await books.transfer(a, b, 1)) for _ in range(3)]

    assert {answer.transaction.posted_at for answer in answers} == {future}
    assert (await books.reader.balances_at([a.id], future))[a.id] == 97
    tick = timedelta(microseconds=1)
    assert (await books.reader.balances_at([a.id], future - tick))[a.id] == 0


async def test_balances_are_exact_beyond_what_a_float_can_hold(books: RunningLedger) -> None:
    wallet = await books.wallet("alice", 2**53 + 1)

    assert await books.available(wallet) == 9_007_199_254_740_993
    (entry,) = await books.reader.entries_after(wallet.account, 0, 1)
    assert (entry.amount, entry.balance_after) == (2**53 + 1, 2**53 + 1)
    assert (await books.reader.balances_at([wallet.id], entry.posted_at))[wallet.id] == 2**53 + 1
    before = await contents(books.url)
    assert posted(await books.transfer(wallet, await books.wallet("bob"), 1, key="k"))
    assert await books.available(wallet) == 2**53
    assert await contents(books.url) != before

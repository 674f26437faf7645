"""History: pages in both directions with every filter, counts, and the balance at any instant."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from app.embedded import RunningPostgres
from app.ledger import pages
from app.ledger.engine import EngineLimits
from app.ledger.model import Direction, Entry
from app.ledger.pages import EntryFilter, Page, PageRequest
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import RunningLedger, Wallet, contents, posted, running_ledger
from tests.support.postgres import TestDatabase, connect

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class History:
    """A wallet with some forty entries of both directions and two types, and all of them as a list, oldest first."""

    books: RunningLedger
    wallet: Wallet
    entries: Sequence[Entry]
    types: Sequence[str]
    """The type of the transaction of each entry."""


@pytest.fixture(scope="module")
async def history(postgres: RunningPostgres, template_database: str) -> AsyncGenerator[History]:
    """Share one history among all tests that only read it."""
    name = "history"
    postgres.create_database(name, template_database)
    database = TestDatabase.of(postgres, name)
    async with running_ledger(database.runtime_url) as books:
        wallet, other = await books.wallet("alice", 500), await books.wallet("bob", 500)
        entries = [
            *(await books.reader.entries_after(wallet.account, 0, 10)),
        ]
        types = ["deposit"]
        chance = random.Random(7)
        for _ in range(40):
            match chance.randrange(3):
                case 0:
                    answer = posted(await books.transfer(wallet, other, chance.randint(1, 12)))
                case 1:
                    await books.transfer(other, wallet, chance.randint(1, 12))
                    answer = None
                case _:
                    await books.deposit(wallet.account, chance.randint(1, 12))
                    answer = None
            (newest,) = await books.reader.entries_after(wallet.account, len(entries), 10)
            assert answer is None or answer.entries == (newest,)
            entries.append(newest)
            transaction_id = newest.transaction_id
            found = await books.reader.transactions(wallet.owner, [transaction_id])
            types.append(found[transaction_id].type)
        yield History(books, wallet, entries, types)
    await assert_books_are_right(database.superuser_url)
    postgres.drop_database(name)


def test_the_history_has_everything_that_the_filters_tell_apart(history: History) -> None:
    assert {entry.direction for entry in history.entries} == set(Direction)
    assert set(history.types) == {"deposit", "transfer"}
    assert len({entry.posted_at for entry in history.entries}) == len(history.entries)


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
    total = len(history.entries)
    bounds = [None, 0, 1, 12, total, total + 1]
    requests = [
        PageRequest(limit, after, before, backward)
        for limit in (1, 7, len(matching) or 1, 100)
        for backward in (False, True)
        for after, before in [
            (None, None),
            *((b, None) for b in bounds),
            *((None, b) for b in bounds),
        ]
    ] + [PageRequest(5, 20, 10), PageRequest(5, 10, 20), PageRequest(3, 10, 20, backward=True)]
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
    assert await ledger.count_entries(account, EntryFilter()) == total


async def test_one_entry_is_found_by_its_sequence(history: History) -> None:
    ledger, wallet, total = history.books.reader, history.wallet, len(history.entries)

    for sequence in (1, 12, total):
        entry = await ledger.entry(wallet.owner, wallet.id, sequence)
        assert entry == history.entries[sequence - 1]
    for sequence in (0, -1, total + 1):
        assert await ledger.entry(wallet.owner, wallet.id, sequence) is None
    assert await ledger.last_transactions([wallet.id]) == {
        wallet.id: history.entries[-1].transaction_id
    }


async def test_a_feed_goes_on_after_any_sequence(history: History) -> None:
    ledger, account = history.books.reader, history.wallet.account

    assert list(await ledger.entries_after(account, 0, 100)) == list(history.entries)
    assert list(await ledger.entries_after(account, 12, 5)) == list(history.entries[12:17])
    assert list(await ledger.entries_after(account, len(history.entries), 5)) == []


# ---------------------------------------------------------------- balances at an instant


async def test_l16_a_balance_at_an_instant_is_that_after_the_last_entry_until_then(
    history: History,
) -> None:
    ledger, wallet = history.books.reader, history.wallet

    async def at(instant: datetime) -> int:
        return (await ledger.balances_at([wallet.id], instant))[wallet.id]

    tick = timedelta(microseconds=1)
    for before, entry in pairwise(history.entries):
        assert await at(entry.posted_at) == entry.balance_after
        assert await at(entry.posted_at - tick) == before.balance_after
        assert await at(entry.posted_at + tick) == entry.balance_after
    first, last = history.entries[0], history.entries[-1]
    assert await at(first.posted_at - tick) == 0
    assert await at(first.posted_at) == first.balance_after
    assert await at(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert await at(last.posted_at + 1_000 * DAY) == last.balance_after
    there = timezone(timedelta(hours=-3))
    middle = history.entries[20]
    assert await at(middle.posted_at.astimezone(there)) == middle.balance_after


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
            for before, after in pairwise(chain):
                assert after.balance_after == before.balance_after + after.amount
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

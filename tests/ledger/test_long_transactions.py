"""A transaction of two hundred legs on one account: all of them share their instant, and none of them its place."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from app.ledger.model import Account, AccountKind, BalanceTracking, Direction, Entry
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.pages import EntryFilter, PageRequest
from tests.support.ledger import OPERATOR, RunningLedger, new_key, posted, vnd

CREDITS = 199

TRACKINGS = pytest.mark.parametrize("tracking", list(BalanceTracking))


async def account_of(books: RunningLedger, tracking: BalanceTracking) -> Account:
    return await books.open(
        kind=AccountKind.REVENUE,
        tracking=tracking,
        allow_negative=tracking is BalanceTracking.DERIVED,
        stripes=4 if tracking is BalanceTracking.STRIPED else None,
    )


async def credit_many_times(books: RunningLedger, account: Account) -> datetime:
    """Credit 1, 2, 3, ... in one transaction and return its instant."""
    source = await books.clearing()
    total = CREDITS * (CREDITS + 1) // 2
    legs = (
        LegCommand(source.id, Direction.DEBIT, vnd(total)),
        *(
            LegCommand(account.id, Direction.CREDIT, vnd(number))
            for number in range(1, CREDITS + 1)
        ),
    )
    command = PostTransactionCommand(new_key(), "sale", legs)
    answer = posted(await books.ledger.post_transaction(OPERATOR, command))
    return answer.transaction.posted_at


async def history(
    books: RunningLedger, account: Account, *, newest_first: bool, backward: bool
) -> list[Entry]:
    """Walk from page to page, from the list's first to its last entry or back, and return the list."""
    met: list[Entry] = []
    request: PageRequest[int] = PageRequest(17, backward=backward)
    while True:
        page = await books.reader.entry_page(
            account, EntryFilter(), request, newest_first=newest_first
        )
        met = [*page.items, *met] if backward else [*met, *page.items]
        if not (page.has_previous if backward else page.has_next):
            return met
        request = (
            PageRequest(17, before=met[0].sequence, backward=True)
            if backward
            else PageRequest(17, after=met[-1].sequence)
        )


def assert_chain(tracking: BalanceTracking, entries: Sequence[Entry]) -> None:
    for before, after in pairwise(entries):
        assert after.sequence > before.sequence
        if tracking is BalanceTracking.DERIVED:
            assert after.balance_after is None
        else:
            assert before.balance_after is not None
            assert after.balance_after == before.balance_after + after.amount


@TRACKINGS
async def test_l16_entries_of_one_transaction_are_paged_in_one_order_from_both_ends(
    books: RunningLedger, tracking: BalanceTracking
) -> None:
    account = await account_of(books, tracking)
    await books.deposit(account, 1_000)
    instant = await credit_many_times(books, account)

    oldest_first = await history(books, account, newest_first=False, backward=False)

    assert [entry.amount for entry in oldest_first] == [1_000, *range(1, CREDITS + 1)]
    assert {entry.posted_at for entry in oldest_first[1:]} == {instant}
    assert_chain(tracking, oldest_first)
    for newest_first in (False, True):
        for backward in (False, True):
            met = await history(books, account, newest_first=newest_first, backward=backward)
            assert met == (oldest_first[::-1] if newest_first else oldest_first)


@TRACKINGS
async def test_l16_a_balance_at_an_instant_counts_a_transaction_wholly_or_not_at_all(
    books: RunningLedger, tracking: BalanceTracking
) -> None:
    account = await account_of(books, tracking)
    first = await books.deposit(account, 1_000)
    instant = await credit_many_times(books, account)
    total = 1_000 + CREDITS * (CREDITS + 1) // 2
    tick = timedelta(microseconds=1)

    async def at(asked: datetime) -> int:
        return (await books.reader.balances_at([account.id], asked))[account.id]

    assert await at(instant) == total
    assert await at(instant.astimezone(timezone(timedelta(hours=5, minutes=45)))) == total
    assert await at(instant - tick) == 1_000
    assert await at(first.transaction.posted_at) == 1_000
    assert await at(first.transaction.posted_at - tick) == 0
    assert await at(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert await at(datetime(2200, 1, 1, tzinfo=UTC)) == total

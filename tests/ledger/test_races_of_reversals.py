"""Two processes take the same transaction back: all that they take back together is never more than it moved.

Where the accounts keep a balance, their locks let one process see what the other has taken. Derived accounts are locked by
nobody; there the unique number of a reversal or refund lets one of two fail, and look again.
"""

import asyncio
from collections.abc import Sequence

import pytest

from app.ledger.model import Account, AccountKind, BalanceTracking, Transaction
from tests.support import calls
from tests.support.ledger import OPERATOR, RunningLedger, posted
from tests.support.servers import POSTED, Answer, Servers, outcomes

ROUNDS = 20
MOVED = 100

TRACKINGS = pytest.mark.parametrize("tracking", [BalanceTracking.TRACKED, BalanceTracking.DERIVED])


async def two_accounts(books: RunningLedger, tracking: BalanceTracking) -> tuple[Account, Account]:
    source, target = [
        await books.open(kind=AccountKind.REVENUE, allow_negative=True, tracking=tracking)
        for _ in range(2)
    ]
    return source, target


async def sales(books: RunningLedger, source: Account, target: Account) -> list[Transaction]:
    answers = await asyncio.gather(
        *(
            books.ledger.post_transaction(OPERATOR, calls.general_command(source, target, MOVED))
            for _ in range(ROUNDS)
        )
    )
    return [posted(answer).transaction for answer in answers]


def won(answers: Sequence[list[list[Answer]]]) -> list[tuple[str, ...]]:
    """Return what became of each transaction at the two processes."""
    dealt = (calls.dealt_back(rows) for rows in answers)
    return [tuple(answer.outcome for answer in both) for both in zip(*dealt, strict=True)]


@TRACKINGS
async def test_a_transaction_is_reversed_once(
    books: RunningLedger, two_servers: Servers, tracking: BalanceTracking
) -> None:
    source, target = await two_accounts(books, tracking)
    originals = await sales(books, source, target)

    answers = await two_servers.post(
        books.url, *(calls.in_rows([calls.reverse(each) for each in originals]) for _ in range(2))
    )

    for both in won(answers):
        assert sorted(both) == ["ALREADY_REVERSED", POSTED]
    assert await books.available(source) == await books.available(target) == 0


@TRACKINGS
async def test_a_transaction_is_reversed_or_refunded(
    books: RunningLedger, two_servers: Servers, tracking: BalanceTracking
) -> None:
    source, target = await two_accounts(books, tracking)
    originals = await sales(books, source, target)

    answers = await two_servers.post(
        books.url,
        calls.in_rows([calls.reverse(each) for each in originals]),
        calls.in_rows([calls.refund(each, 30) for each in originals]),
    )

    taken = 0
    for both in won(answers):
        assert sorted(both) == ["ALREADY_REVERSED", POSTED]
        taken += MOVED if both[0] == POSTED else 30
    assert await books.available(target) == ROUNDS * MOVED - taken


@TRACKINGS
async def test_refunds_together_never_exceed_what_was_moved(
    books: RunningLedger, two_servers: Servers, tracking: BalanceTracking
) -> None:
    source, target = await two_accounts(books, tracking)
    originals = (await sales(books, source, target))[:5]

    refunds = [[calls.refund(each, 30) for _ in range(5)] for each in originals]
    others = [[calls.refund(each, 30) for _ in range(5)] for each in originals]
    answers = await two_servers.post(books.url, refunds, others)

    for mine, theirs in zip(*answers, strict=True):
        assert outcomes([[mine, theirs]]) == {POSTED: 3, "REFUND_EXCEEDS_ORIGINAL": 7}
    assert await books.available(target) == ROUNDS * MOVED - 5 * 90

"""One process closes accounts while another moves money through them: there is never money in a closed account.

A close locks the account with its children so strongly that even those wait who only share a derived account's row.
With a weaker lock on derived accounts, or none on stripes, both succeed.
"""

import asyncio
from collections.abc import Sequence

from app.ledger.model import Account, AccountKind, AccountStatus, BalanceTracking
from tests.support import calls
from tests.support.ledger import RunningLedger
from tests.support.postgres import TestDatabase, scalar
from tests.support.servers import DONE, POSTED, Call, Servers, outcomes

ROUNDS = 30
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


async def accounts(books: RunningLedger, **sort: object) -> list[Account]:
    return list(await asyncio.gather(*(books.open(**sort) for _ in range(ROUNDS))))


async def close_against(
    books: RunningLedger, servers: Servers, closing: Sequence[Account], moves: Sequence[Call]
) -> None:
    """Close each account at the moment of its move: one of the two is refused because of the other."""
    answers = await servers.post(
        books.url,
        calls.in_rows([calls.set_status(each, AccountStatus.CLOSED) for each in closing]),
        calls.in_rows(moves),
    )

    closes, moved = (calls.dealt_back(rows) for rows in answers)
    for account, close, move in zip(closing, closes, moved, strict=True):
        assert (close.outcome, move.outcome) in {
            (DONE, "ACCOUNT_CLOSED"),
            ("ACCOUNT_NOT_EMPTY", POSTED),
        }
        balance = await books.balance(account)
        assert (balance.available + balance.held != 0) == (move.outcome == POSTED)


async def test_a_deposit_that_races_a_close_leaves_no_money_in_a_closed_account(
    books: RunningLedger, two_servers: Servers
) -> None:
    wallets = await accounts(books, owner="alice")
    await close_against(
        books, two_servers, wallets, [calls.deposit(wallet, 5) for wallet in wallets]
    )


async def test_a_credit_to_a_stripe_that_races_a_close_leaves_no_money_in_a_closed_account(
    books: RunningLedger, two_servers: Servers
) -> None:
    """The credit locks a single stripe, and never the account that is closed."""
    striped = await accounts(books, tracking=BalanceTracking.STRIPED, stripes=4)
    await close_against(
        books, two_servers, striped, [calls.deposit(account, 5) for account in striped]
    )


async def test_a_posting_to_a_derived_account_that_races_a_close_leaves_no_money_in_it(
    books: RunningLedger, two_servers: Servers
) -> None:
    """The posting shares the account's row with all others, and keeps it from nothing but a change of its status."""
    derived = await accounts(
        books, kind=AccountKind.REVENUE, allow_negative=True, tracking=BalanceTracking.DERIVED
    )
    customer = await books.wallet("alice", ROUNDS)
    await close_against(
        books, two_servers, derived, [calls.general(customer, account, 1) for account in derived]
    )


async def test_a_hold_that_races_a_close_is_not_open_in_a_closed_account(
    books: RunningLedger, two_servers: Servers
) -> None:
    """Nothing but an account that may be negative can hold money while it has none."""
    lenient = await accounts(books, owner="alice", allow_negative=True)
    answers = await two_servers.post(
        books.url,
        calls.in_rows([calls.set_status(each, AccountStatus.CLOSED) for each in lenient]),
        calls.in_rows([calls.place_hold(each, 5) for each in lenient]),
    )

    closes, holds = (calls.dealt_back(rows) for rows in answers)
    for close, hold in zip(closes, holds, strict=True):
        assert (close.outcome, hold.outcome) in {
            (DONE, "ACCOUNT_CLOSED"),
            ("ACCOUNT_NOT_EMPTY", POSTED),
        }


async def test_freezing_and_posting_take_their_locks_in_one_order(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """Holds of striped accounts, whose postings touch parent, stripes and held child, never deadlock with a freeze."""
    striped = await accounts(books, tracking=BalanceTracking.STRIPED, stripes=4)
    await asyncio.gather(*(books.deposit(account, 100) for account in striped))
    before = await scalar(audited.superuser_url, DEADLOCKS)

    freezes = [
        calls.set_status(account, status)
        for account in striped
        for status in (AccountStatus.FROZEN, AccountStatus.ACTIVE) * 2
    ]
    holds = [calls.place_hold(account, 1) for account in striped for _ in range(6)]
    answers = await two_servers.post(books.url, calls.in_rows(freezes), calls.in_rows(holds))

    assert outcomes(answers[:1]) == {DONE: len(freezes)}
    assert outcomes(answers[1:]).keys() <= {POSTED, "ACCOUNT_FROZEN"}
    assert await scalar(audited.superuser_url, DEADLOCKS) == before

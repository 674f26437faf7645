"""One process closes accounts while another moves money through them: there is never money in a closed account.

A close locks the account with its children so strongly that even those wait who only share a derived account's row.
With a weaker lock on derived accounts, or none on stripes, both succeed.
"""

import asyncio
from collections.abc import Sequence

from app.ledger.administration import SetAccountStatusCommand
from app.ledger.answers import HoldAnswer, HoldPosted
from app.ledger.model import Account, AccountKind, AccountStatus, BalanceTracking
from app.ledger.movements.holds import PlaceHoldCommand
from app.ledger.posting.decision import Refused
from tests.processes.waiting import until
from tests.support import calls
from tests.support.ledger import OPERATOR, RunningLedger, metric, new_key, vnd
from tests.support.postgres import TestDatabase, connect, scalar
from tests.support.servers import DONE, POSTED, Call, Servers

ROUNDS = 30

RETRIES = "saldo_posting_retries_total"
DEADLOCK = "40P01"
MIDDLE_STRIPE = """
select from account where id = (
  select id from account where parent_id = $1 and purpose = 'STRIPE' order by id offset 2 limit 1
) for update
"""
WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name like 'saldo%'
"""


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
    books: RunningLedger, audited: TestDatabase
) -> None:
    """Both want an account with all of its stripes, of which somebody has one in the middle.

    Each has locked what comes before that in its order. If the orders differed, each would then have what the other wants.
    """
    account = await books.open(tracking=BalanceTracking.STRIPED, stripes=4)
    await books.deposit(account, 100)
    await place_hold(books, account)
    deadlocks = metric(RETRIES, reason=DEADLOCK)
    async with connect(audited.superuser_url) as somebody, somebody.transaction():
        await somebody.execute(MIDDLE_STRIPE, account.id)
        holding = asyncio.ensure_future(place_hold(books, account))
        await waiting(audited, 1)
        freezing = asyncio.ensure_future(freeze(books, account))
        await waiting(audited, 2)

    frozen = await freezing
    assert isinstance(frozen, Account)
    assert frozen.status == AccountStatus.FROZEN
    assert isinstance(await holding, HoldPosted)
    assert metric(RETRIES, reason=DEADLOCK) == deadlocks


async def waiting(database: TestDatabase, sessions: int) -> None:
    async def so_many() -> bool:
        return await scalar(database.superuser_url, WAITING) >= sessions

    await until(so_many, f"{sessions} sessions wait for a lock")


async def place_hold(books: RunningLedger, account: Account) -> HoldAnswer:
    command = PlaceHoldCommand(new_key(), account.id, vnd(1))
    return await books.ledger.place_hold(OPERATOR, command)


async def freeze(books: RunningLedger, account: Account) -> Account | Refused:
    command = SetAccountStatusCommand(account.id, AccountStatus.FROZEN)
    return await books.ledger.set_account_status(OPERATOR, command)

"""Accounts that many postings want at once: striped ones, whose money lies in several rows, and derived ones, which nobody locks."""

import asyncio
from typing import Any

import pytest

from app.ledger.administration import SetAccountStatusCommand
from app.ledger.errors import (
    AccountClosed,
    AccountFrozen,
    AccountNotEmpty,
    InsufficientFunds,
    InvalidInput,
)
from app.ledger.model import Account, AccountKind, AccountStatus, BalanceTracking, Direction
from app.ledger.money import Money
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.movements.sweeps import SweepCommand
from app.ledger.pages import EntryFilter, PageRequest
from app.ledger.posting.decision import Refused
from tests.support.ledger import OPERATOR, RunningLedger, Wallet, contents, new_key, posted, vnd
from tests.support.postgres import connect

STRIPES = """
select stripe, balance from account where parent_id = $1 and purpose = 'STRIPE' order by stripe
"""


async def striped(books: RunningLedger, owner: str | None = "shop", stripes: int = 4) -> Account:
    return await books.open(owner=owner, tracking=BalanceTracking.STRIPED, stripes=stripes)


async def derived(books: RunningLedger, **command: Any) -> Account:
    return await books.open(
        kind=AccountKind.REVENUE,
        allow_negative=True,
        tracking=BalanceTracking.DERIVED,
        **command,
    )


async def balances_of_stripes(books: RunningLedger, account: Account) -> list[int]:
    async with connect(books.url) as connection:
        return [row["balance"] for row in await connection.fetch(STRIPES, account.id)]


async def fill(books: RunningLedger, account: Account, amounts: list[int]) -> None:
    """Put money into several stripes: each credit finds one of them, in the end none is empty."""
    for amount in amounts:
        await books.deposit(account, amount)


def post(*legs: tuple[Account | Wallet, int]) -> PostTransactionCommand:
    """Build a general posting from accounts and signed amounts, credit positive."""
    return PostTransactionCommand(
        new_key(),
        "sale",
        tuple(
            LegCommand(
                account.id,
                Direction.CREDIT if amount > 0 else Direction.DEBIT,
                vnd(abs(amount)),
            )
            for account, amount in legs
        ),
    )


async def test_a_striped_account_opens_with_its_children_and_no_money(books: RunningLedger) -> None:
    account = await striped(books, stripes=5)
    assert account.stripes == 5
    assert await balances_of_stripes(books, account) == [0] * 5
    balance = await books.balance(account)
    assert (balance.available, balance.held, balance.sequence) == (0, 0, 0)


async def test_credits_are_spread_and_the_balance_is_their_sum(books: RunningLedger) -> None:
    account = await striped(books)
    await fill(books, account, [10] * 60)
    stripes = await balances_of_stripes(books, account)
    assert sum(stripes) == 600
    # One of 4 stripes at random, 60 times: that one gets nothing happens once in 8 million runs.
    assert min(stripes) > 0
    assert await books.available(account) == 600


async def test_a_debit_draws_on_as_many_stripes_as_it_needs_and_never_fails_while_funded(
    books: RunningLedger,
) -> None:
    account = await striped(books)
    payee = await books.wallet("bob")
    await fill(books, account, [10] * 60)
    shop = Wallet(account, OPERATOR.__class__("shop", OPERATOR.scopes))
    everything = posted(await books.transfer(shop, payee, 599))
    assert await balances_of_stripes(books, account) in (
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    )
    assert (
        sum(leg.amount for leg in everything.transaction.legs if leg.account_id == account.id)
        == -599
    )
    assert {leg.purpose for leg in everything.transaction.legs} == {"STRIPE", "MAIN"}
    before = await contents(books.url)
    answer = await books.transfer(shop, payee, 2)
    assert answer == Refused(InsufficientFunds(("amount", "minorUnits"), account.id, "VND", 1, 2))
    assert await contents(books.url) == before
    posted(await books.transfer(shop, payee, 1))
    assert await books.available(account) == 0
    assert await books.available(payee) == 600


async def test_the_history_of_a_striped_account_is_one_chain_of_what_the_account_had(
    books: RunningLedger,
) -> None:
    account = await striped(books)
    payee = await books.wallet("bob")
    shop = Wallet(account, OPERATOR.__class__("shop", OPERATOR.scopes))
    await asyncio.gather(*(books.deposit(account, 7) for _ in range(80)))
    lines = posted(await books.transfer(shop, payee, 500)).entries
    assert {line.account.id for line in lines} == {account.id, payee.id}

    newest = await books.reader.entry_page(
        account, EntryFilter(), PageRequest(100), newest_first=True
    )
    oldest = await books.reader.entry_page(
        account, EntryFilter(), PageRequest(100), newest_first=False
    )
    assert newest.items == oldest.items[::-1]
    has = 0
    for line in oldest.items:
        has += line.amount
        assert line.balance_after == has
        assert line.account == account
    assert has == 60
    told = {line.sequence: line.balance_after for line in lines if line.account.id == account.id}
    assert told == {line.sequence: line.balance_after for line in oldest.items[80:]}

    pages: list[int] = []
    after = None
    while True:
        page = await books.reader.entry_page(
            account, EntryFilter(), PageRequest(9, after=after), newest_first=False
        )
        pages += [line.sequence for line in page.items]
        if not page.has_next:
            break
        after = page.items[-1].sequence
    assert pages == [line.sequence for line in oldest.items]


async def test_a_sweep_gathers_all_in_the_first_stripe_and_moves_nothing_else(
    books: RunningLedger,
) -> None:
    account = await striped(books)
    await fill(books, account, [10] * 60)
    swept = posted(await books.ledger.sweep(OPERATOR, SweepCommand("s", account.id)))
    assert swept.transaction.type == "sweep"
    assert await balances_of_stripes(books, account) == [600, 0, 0, 0]
    assert await books.available(account) == 600
    again = posted(await books.ledger.sweep(OPERATOR, SweepCommand("s", account.id)))
    assert again.replayed
    assert [line.balance_after for line in again.entries] == [
        line.balance_after for line in swept.entries
    ]
    before = await contents(books.url)
    nothing = await books.ledger.sweep(OPERATOR, SweepCommand(new_key(), account.id))
    assert isinstance(nothing, Refused)
    assert isinstance(nothing.refusal, InvalidInput)
    assert await contents(books.url) == before


async def test_the_ledger_sweeps_by_itself_once_in_a_period(books: RunningLedger) -> None:
    account = await striped(books)
    await fill(books, account, [10] * 60)
    assert await books.upkeep.sweep_hot_accounts() == 1
    assert await balances_of_stripes(books, account) == [600, 0, 0, 0]
    assert await books.upkeep.sweep_hot_accounts() == 0


async def test_a_derived_account_is_posted_to_while_somebody_holds_its_row(
    books: RunningLedger,
) -> None:
    account, wallet = await derived(books), await books.wallet("alice", 1_000)
    async with connect(books.url) as connection, connection.transaction():
        await connection.execute("select from account where id = $1 for no key update", account.id)
        for _ in range(3):
            answer = posted(
                await books.ledger.post_transaction(OPERATOR, post((wallet, -100), (account, 100)))
            )
            line = next(line for line in answer.entries if line.account.id == account.id)
            assert line.balance_after is None
    assert await books.available(account) == 300
    assert await books.available(wallet) == 700


async def test_a_derived_account_counts_its_snapshot_and_what_came_after(
    books: RunningLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ledger.upkeep._SNAPSHOT_FEWEST", 3)
    monkeypatch.setattr("app.ledger.upkeep._SNAPSHOT_MOST", 4)
    account, wallet = await derived(books), await books.wallet("alice", 1_000)

    async def earn(times: int) -> None:
        for _ in range(times):
            posted(
                await books.ledger.post_transaction(OPERATOR, post((wallet, -10), (account, 10)))
            )

    await earn(9)
    assert await books.upkeep.take_snapshots() == 2
    assert await books.available(account) == 90
    await earn(2)
    assert await books.available(account) == 110
    assert await books.upkeep.take_snapshots() == 1
    assert await books.upkeep.take_snapshots() == 0
    assert await books.available(account) == 110


async def test_a_snapshot_ends_before_what_may_still_turn_up(
    books: RunningLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has announced a stamp and not yet booked under it, so what came after can't be final."""
    monkeypatch.setattr("app.ledger.upkeep._SNAPSHOT_FEWEST", 1)
    account, wallet = await derived(books), await books.wallet("alice", 1_000)
    posted(await books.ledger.post_transaction(OPERATOR, post((wallet, -10), (account, 10))))
    async with connect(books.url) as connection, connection.transaction():
        await connection.execute("select announce_stamp()")
        posted(await books.ledger.post_transaction(OPERATOR, post((wallet, -10), (account, 10))))
        assert await books.upkeep.take_snapshots() == 1
        assert await connection.fetchval("select sum(balance) from snapshot") == 10
        assert await books.upkeep.take_snapshots() == 0
    assert await books.upkeep.take_snapshots() == 1
    async with connect(books.url) as connection:
        latest = await connection.fetchrow(
            "select balance, posted_at from snapshot order by sequence desc"
        )
        newest = await connection.fetchval(
            "select max(posted_at) from entry where account_id = $1", account.id
        )
    assert latest is not None
    assert (latest["balance"], latest["posted_at"]) == (20, newest)
    assert await books.available(account) == 20


@pytest.mark.parametrize("kind", ["striped", "derived"])
async def test_a_hot_account_is_frozen_and_closed_like_any_other(
    books: RunningLedger, kind: str
) -> None:
    account = await (striped(books) if kind == "striped" else derived(books))
    wallet = await books.wallet("alice", 1_000)
    posted(await books.ledger.post_transaction(OPERATOR, post((wallet, -100), (account, 100))))

    async def set_status(status: AccountStatus) -> Account | Refused:
        return await books.ledger.set_account_status(
            OPERATOR, SetAccountStatusCommand(account.id, status)
        )

    assert await set_status(AccountStatus.CLOSED) == Refused(AccountNotEmpty(("accountId",)))
    frozen = await set_status(AccountStatus.FROZEN)
    assert isinstance(frozen, Account)
    refused = await books.ledger.post_transaction(OPERATOR, post((wallet, -100), (account, 100)))
    assert refused == Refused(AccountFrozen(("legs", "1", "accountId")))
    await set_status(AccountStatus.ACTIVE)
    posted(await books.ledger.post_transaction(OPERATOR, post((wallet, 100), (account, -100))))
    assert isinstance(await set_status(AccountStatus.CLOSED), Account)
    refused = await books.ledger.post_transaction(OPERATOR, post((wallet, -100), (account, 100)))
    assert refused == Refused(AccountClosed(("legs", "1", "accountId")))
    assert await set_status(AccountStatus.ACTIVE) == Refused(AccountClosed(("accountId",)))
    assert Money(1_000, "VND").minor_units == await books.available(wallet)

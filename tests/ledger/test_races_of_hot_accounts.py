"""Two processes at a hot account: no money is lost or made between its stripes, and who is funded is never refused."""

import asyncio

from app.ledger.model import Account, BalanceTracking
from tests.support import calls
from tests.support.ledger import RunningLedger, Wallet, new_key, wallet_user
from tests.support.postgres import TestDatabase, connect, scalar
from tests.support.servers import DONE, POSTED, Call, Servers, Transfer, outcomes

STRIPES = 8
SHOP = "shop"
PERIOD = "select floor(extract(epoch from clock_timestamp()) / 3600)"


async def striped_shop(books: RunningLedger, parts: int, minor_units: int) -> Wallet:
    """Open a striped account and bring money to it in parts, which lie on all of its stripes."""
    account = await books.open(owner=SHOP, tracking=BalanceTracking.STRIPED, stripes=STRIPES)
    # One after the other, since what comes at once goes to one stripe.
    for _ in range(parts):
        await books.deposit(account, minor_units)
    return Wallet(account, wallet_user(SHOP))


async def balances_of_stripes(database: TestDatabase, account: Account) -> list[int]:
    query = (
        "select balance from account where parent_id = $1 and purpose = 'STRIPE' order by stripe"
    )
    async with connect(database.superuser_url) as connection:
        return [row["balance"] for row in await connection.fetch(query, account.id)]


def payment(source: Wallet, target: Wallet, minor_units: int) -> Call:
    return Transfer(SHOP, new_key(), source.id, target.id, minor_units).call()


async def test_debits_of_a_striped_account_succeed_exactly_as_often_as_it_is_funded(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """A payment needs the money of several stripes, and locks all of them before it looks.

    If it locked only those that it draws on, two payments would reckon with the same money.
    """
    shop, payee = await striped_shop(books, 60, 10), await books.wallet("payee")
    assert max(await balances_of_stripes(audited, shop.account)) < 600

    answers = await two_servers.post(
        books.url,
        *(calls.in_rows([payment(shop, payee, 70) for _ in range(20)]) for _ in range(2)),
    )

    assert outcomes(answers) == {POSTED: 600 // 70, "INSUFFICIENT_FUNDS": 40 - 600 // 70}
    assert await books.available(shop) == 600 % 70
    assert await books.available(payee) == 600 - 600 % 70


async def test_a_funded_debit_is_never_refused_while_credits_and_sweeps_go_on(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """Money that a sweep is moving between stripes is there all the time."""
    shop, payee = await striped_shop(books, 40, 10), await books.wallet("payee")
    debits = [payment(shop, payee, 10) for _ in range(40)]
    credits_ = [calls.deposit(shop.account, 1) for _ in range(40)]
    sweeps = [calls.sweep(shop) for _ in range(20)]

    paid, others = await two_servers.post(
        books.url, calls.in_rows(debits, 2), [*calls.in_rows(credits_, 2), sweeps]
    )

    assert outcomes([paid]) == {POSTED: 40}
    assert outcomes([others[:2]]) == {POSTED: 40}
    # Where no credit came in between, there is nothing to gather.
    assert outcomes([others[2:]]).keys() <= {POSTED, "INVALID_INPUT"}
    assert await books.available(shop) == 40
    assert sum(await balances_of_stripes(audited, shop.account)) == 40
    assert await books.available(payee) == 400


async def test_two_processes_sweep_each_account_once_in_a_period(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """The key of a sweep is made from the account and the period, whatever has come in since."""
    shops = await asyncio.gather(*(striped_shop(books, 10, 10) for _ in range(10)))
    began = await scalar(audited.superuser_url, PERIOD)

    twice = [[Call("sweep_hot_accounts")] * 2]
    answers = await two_servers.post(books.url, twice, twice)

    assert outcomes(answers) == {DONE: 4}
    assert sum(answer.count for rows in answers for row in rows for answer in row) == len(shops)
    for shop in shops:
        assert await balances_of_stripes(audited, shop.account) == [100, *[0] * (STRIPES - 1)]
    sweeps = "select count(*) from journal where type = 'sweep'"
    assert await scalar(audited.superuser_url, sweeps) == len(shops)
    await asyncio.gather(*(books.deposit(shop.account, 1) for shop in shops for _ in range(5)))
    swept = await books.upkeep.sweep_hot_accounts()
    assert swept == 0 or await scalar(audited.superuser_url, PERIOD) != began

"""What only comes into being when it is needed, needed by two processes at once: it is made once, and nobody is refused."""

import asyncio

from app.ledger.answers import HoldPosted
from app.ledger.model import Hold
from app.ledger.movements.withdrawals import SettlementOutcome, WithdrawCommand
from tests.support import calls
from tests.support.ledger import RunningLedger, Wallet, new_key, vnd
from tests.support.postgres import TestDatabase, connect, scalar
from tests.support.servers import POSTED, Call, Servers, Transfer, outcomes

CURRENCIES = ("BRL", "JPY", "KWD", "USD", "EUR")
CLEARING = "select count(*) from account where code like 'system:bank_clearing:%'"


async def test_l01_one_of_many_ways_to_spend_the_same_money_succeeds(
    books: RunningLedger, two_servers: Servers
) -> None:
    """Transfers, holds and withdrawals of 60 want the same 100; all of them lock the wallet's row first.

    Each process asks for one thing at a time, so that every request is a batch of its own and races one of the other's.
    """
    wallets = await asyncio.gather(*(books.wallet("alice", 100) for _ in range(20)))
    payee = await books.wallet("bob")

    answers = await two_servers.post(
        books.url,
        *([[spend for wallet in wallets for spend in spends(wallet, payee)]] for _ in range(2)),
    )

    assert outcomes(answers) == {POSTED: 20, "INSUFFICIENT_FUNDS": 20 * 6 - 20}
    balances = [await books.balance(wallet) for wallet in wallets]
    assert {balance.available for balance in balances} == {40}
    held = sum(balance.held for balance in balances)
    assert held + await books.available(payee) == 20 * 60


def spends(wallet: Wallet, payee: Wallet) -> list[Call]:
    return [
        Transfer(wallet.owner.subject, new_key(), wallet.id, payee.id, 60).call(),
        calls.place_hold(wallet, 60),
        calls.withdraw(wallet, 60),
    ]


async def test_the_held_child_is_made_once(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """It is opened by the posting that needs it, which has locked its parent; the unique index is the net beneath."""
    wallets = await asyncio.gather(*(books.wallet("alice", 100) for _ in range(15)))

    answers = await two_servers.post(
        books.url,
        *(
            calls.in_rows([calls.place_hold(wallet, 10) for wallet in wallets for _ in range(3)])
            for _ in range(2)
        ),
    )

    assert outcomes(answers) == {POSTED: 90}
    assert {(await books.balance(wallet)).held for wallet in wallets} == {60}
    children = "select count(*) from account where purpose = 'HELD'"
    assert await scalar(audited.superuser_url, children) == len(wallets)


async def test_a_clearing_account_is_made_once_by_the_first_deposits(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    wallets = [await books.wallet("alice", currency=currency) for currency in CURRENCIES]

    answers = await two_servers.post(
        books.url,
        *(
            [[calls.deposit(wallet.account, 1)] for wallet in wallets for _ in range(4)]
            for _ in range(2)
        ),
    )

    assert outcomes(answers) == {POSTED: 8 * len(CURRENCIES)}
    assert {await books.available(wallet) for wallet in wallets} == {8}
    async with connect(audited.superuser_url) as connection:
        rows = await connection.fetch(
            "select code, balance from account where code like 'system:%'"
        )
    assert {(row["code"], row["balance"]) for row in rows} == {
        (f"system:bank_clearing:{currency}", -8) for currency in CURRENCIES
    }
    assert len(rows) == len(CURRENCIES)


async def test_a_clearing_account_is_made_once_by_the_first_settlements(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    bank = await books.clearing()
    withdrawals: list[Hold] = []
    for number in range(8):
        wallet = await books.wallet(f"owner {number}")
        await books.deposit(wallet.account, 5, bank)
        command = WithdrawCommand(new_key(), wallet.id, vnd(5))
        answer = await books.ledger.withdraw(wallet.owner, command)
        assert isinstance(answer, HoldPosted)
        withdrawals.append(answer.hold)
    assert await scalar(audited.superuser_url, CLEARING) == 0

    completed = [calls.settle(each, SettlementOutcome.COMPLETED) for each in withdrawals]
    answers = await two_servers.post(
        books.url, calls.in_rows(completed[:4]), calls.in_rows(completed[4:])
    )

    assert outcomes(answers) == {POSTED: 8}
    assert await scalar(audited.superuser_url, CLEARING) == 1

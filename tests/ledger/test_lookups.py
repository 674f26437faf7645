"""Looks that come before a posting: what they find, and that many at once cost as much as a few."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.driver import DriverConnections
from app.ledger.answers import HoldAnswer, HoldPosted
from app.ledger.model import AccountPurpose, BalanceTracking, Hold, HoldPurpose
from app.ledger.movements.holds import CaptureHoldCommand, HeldMoney, PlaceHoldCommand
from app.ledger.movements.withdrawals import WithdrawCommand
from app.ledger.reading.lookups import Lookups
from tests.support.ledger import (
    OPERATOR,
    RunningLedger,
    Wallet,
    new_id,
    new_key,
    posted,
    vnd,
    wallet_user,
)


@pytest.fixture
async def connections(books: RunningLedger) -> AsyncGenerator[DriverConnections]:
    """Lend connections that nobody else uses."""
    lent = DriverConnections(books.url)
    yield lent
    await lent.close()


@contextlib.asynccontextmanager
async def counted(connections: DriverConnections) -> AsyncGenerator[list[str]]:
    """Note what is asked on the connections that have been used so far."""
    asked: list[str] = []

    def note(query: Any) -> None:
        asked.append(query.query)

    for connection in connections._idle:
        connection.add_query_logger(note)
    yield asked
    for connection in connections._idle:
        connection.remove_query_logger(note)


def held(answer: HoldAnswer) -> Hold:
    """Take it for granted that the answer is a hold or withdrawal."""
    assert isinstance(answer, HoldPosted), answer
    return answer.hold


async def place(books: RunningLedger, wallet: Wallet, amount: int) -> Hold:
    command = PlaceHoldCommand(new_key(), wallet.id, vnd(amount))
    return held(await books.ledger.place_hold(wallet.owner, command))


async def test_held_money_is_found_whatever_it_is_held_for(
    books: RunningLedger, connections: DriverConnections
) -> None:
    lookups, alice = Lookups(connections), await books.wallet("alice", 100)
    hold = await place(books, alice, 30)
    withdrawal = held(
        await books.ledger.withdraw(alice.owner, WithdrawCommand(new_key(), alice.id, vnd(20)))
    )

    assert await lookups.held_money(hold.id) == HeldMoney(
        hold.id, alice.id, HoldPurpose.HOLD, "VND", 30, ()
    )
    assert await lookups.held_money(withdrawal.id) == HeldMoney(
        withdrawal.id, alice.id, HoldPurpose.WITHDRAWAL, "VND", 20, ()
    )
    assert await lookups.held_money(new_id()) is None
    assert await lookups.held_money(alice.id) is None


async def test_what_each_stripe_gave_is_told_before_and_after_the_hold_has_ended(
    books: RunningLedger, connections: DriverConnections
) -> None:
    lookups, bob = Lookups(connections), await books.wallet("bob")
    account = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=4)
    shop = Wallet(account, wallet_user("shop"))
    for amount in range(1, 21):
        await books.deposit(account, amount)
    hold = await place(books, shop, 200)
    (placed,) = (await books.reader.transactions_of_holds(OPERATOR, [hold.id]))[hold.id]
    given = [leg for leg in placed.legs if leg.purpose is AccountPurpose.STRIPE]
    assert len(given) > 1, "so much can't have come from one stripe"

    for _ in range(2):
        money = await lookups.held_money(hold.id)
        assert money is not None
        assert money.account_id == account.id
        assert sorted(amount for _, amount in money.stripes) == sorted(-leg.amount for leg in given)
        assert len({stripe_id for stripe_id, _ in money.stripes}) == len(given)
        assert sum(amount for _, amount in money.stripes) == money.amount == 200
        await books.ledger.capture_hold(
            OPERATOR, CaptureHoldCommand(new_key(), hold.id, bob.id, vnd(50))
        )
    assert await books.available(account) == 210 - 50


async def test_a_transaction_is_found_with_its_legs(
    books: RunningLedger, connections: DriverConnections
) -> None:
    lookups = Lookups(connections)
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    sent = posted(await books.transfer(alice, bob, 7, metadata={"for": ["rent", 1]})).transaction
    hold = await place(books, alice, 5)
    (placed,) = (await books.reader.transactions_of_holds(OPERATOR, [hold.id]))[hold.id]

    assert await lookups.transaction(sent.id) == sent
    assert await lookups.transaction(placed.id) == placed
    assert placed.hold_id == hold.id
    assert await lookups.transaction(new_id()) is None
    assert await lookups.transaction(hold.id) is None


async def test_many_looks_at_once_take_two_statements(
    books: RunningLedger, connections: DriverConnections
) -> None:
    lookups, alice = Lookups(connections), await books.wallet("alice", 100)
    holds = [await place(books, alice, amount) for amount in range(1, 6)]
    await lookups.held_money(holds[0].id)

    async with counted(connections) as asked:
        found = await asyncio.gather(*(lookups.held_money(hold.id) for hold in holds * 20))

    assert [money and money.hold_id for money in found] == [hold.id for hold in holds * 20]
    assert len(asked) <= 2

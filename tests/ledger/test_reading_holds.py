"""Holds and withdrawals as they are read: who may see which, in which order, and what was booked for them."""

from datetime import UTC, datetime
from itertools import combinations
from uuid import UUID

import pytest

from app.ledger.answers import HoldAnswer, HoldPosted
from app.ledger.model import (
    BalanceTracking,
    Caller,
    Hold,
    HoldPurpose,
    HoldStatus,
    Scope,
)
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
)
from app.ledger.pages import PageRequest
from tests.support.ledger import OPERATOR, RunningLedger, Wallet, new_id, new_key, vnd, wallet_user

EVERY_SET_OF_SCOPES = [
    frozenset(chosen) for size in range(4) for chosen in combinations(Scope, size)
]


def done(answer: HoldAnswer) -> HoldPosted:
    """Take it for granted that the answer is a hold or withdrawal."""
    assert isinstance(answer, HoldPosted), answer
    return answer


async def place(books: RunningLedger, wallet: Wallet, amount: int = 1) -> HoldPosted:
    command = PlaceHoldCommand(new_key(), wallet.id, vnd(amount), metadata={"for": "a room"})
    return done(await books.ledger.place_hold(wallet.owner, command))


async def capture(books: RunningLedger, hold: Hold, target: Wallet, amount: int) -> HoldPosted:
    command = CaptureHoldCommand(new_key(), hold.id, target.id, vnd(amount))
    return done(await books.ledger.capture_hold(OPERATOR, command))


async def void(books: RunningLedger, hold: Hold) -> HoldPosted:
    return done(await books.ledger.void_hold(OPERATOR, VoidHoldCommand(new_key(), hold.id)))


async def withdraw(books: RunningLedger, wallet: Wallet, amount: int = 1) -> HoldPosted:
    command = WithdrawCommand(new_key(), wallet.id, vnd(amount), external_reference="pix 1")
    return done(await books.ledger.withdraw(wallet.owner, command))


async def settle(
    books: RunningLedger, withdrawal: Hold, outcome: SettlementOutcome, reason: str | None = None
) -> HoldPosted:
    command = SettleWithdrawalCommand(new_key(), withdrawal.id, outcome, failure_reason=reason)
    return done(await books.ledger.settle_withdrawal(OPERATOR, command))


async def test_a_hold_is_read_as_it_was_answered_at_every_stage(books: RunningLedger) -> None:
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    ask = books.reader

    placed = (await place(books, alice, 30)).hold
    assert (placed.status, placed.amount, placed.captured) == (HoldStatus.OPEN, 30, 0)
    assert placed.metadata == {"for": "a room"}
    assert await ask.hold(alice.owner, placed.id) == placed

    captured = (await capture(books, placed, bob, 20)).hold
    assert (captured.status, captured.captured) == (HoldStatus.CAPTURED, 20)
    assert await ask.hold(alice.owner, placed.id) == captured

    voided = (await void(books, (await place(books, alice)).hold)).hold
    assert voided.status is HoldStatus.VOIDED
    assert await ask.hold(alice.owner, voided.id) == voided

    asked = (await withdraw(books, alice, 5)).hold
    assert asked.purpose is HoldPurpose.WITHDRAWAL
    failed = (await settle(books, asked, SettlementOutcome.FAILED, "account unknown")).hold
    assert failed.failure_reason == "account unknown"
    assert await ask.withdrawal(alice.owner, asked.id) == failed


@pytest.mark.parametrize("scopes", EVERY_SET_OF_SCOPES)
async def test_who_may_read_a_hold_or_a_withdrawal(
    books: RunningLedger, scopes: frozenset[Scope]
) -> None:
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    placed = await place(books, alice, 5)
    captured = await capture(books, placed.hold, bob, 5)
    withdrawn = await withdraw(books, alice)
    audits, owns, ask = Scope.AUDIT in scopes, Scope.WALLET in scopes, books.reader

    for subject in ("alice", "bob", "eve"):
        caller = Caller(subject, scopes)
        readable = audits or (owns and subject == "alice")
        assert await ask.hold(caller, placed.hold.id) == (captured.hold if readable else None)
        assert await ask.withdrawal(caller, withdrawn.hold.id) == (
            withdrawn.hold if readable else None
        )
        # Neither is found as the other, nor as what doesn't exist.
        assert await ask.hold(caller, withdrawn.hold.id) is None
        assert await ask.withdrawal(caller, placed.hold.id) is None
        assert await ask.hold(caller, new_id()) is None
        # Whoever made a transaction sees it, and so does the other side of a capture.
        seen = await ask.transactions_of_holds(caller, [placed.hold.id])
        made = subject == "alice" and bool(scopes)
        assert seen[placed.hold.id] == (
            *([placed.transaction] if readable or made else []),
            *([captured.transaction] if readable or (owns and subject == "bob") else []),
        )


async def test_the_transactions_of_holds_come_oldest_first(books: RunningLedger) -> None:
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    answers: dict[UUID, list[HoldPosted]] = {}
    for end in ("open", "captured", "voided"):
        placed = await place(books, alice, 9)
        answers[placed.hold.id] = [placed]
        match end:
            case "captured":
                answers[placed.hold.id].append(await capture(books, placed.hold, bob, 4))
            case "voided":
                answers[placed.hold.id].append(await void(books, placed.hold))
            case _:
                pass
    withdrawn = await withdraw(books, alice)
    settled = await settle(books, withdrawn.hold, SettlementOutcome.COMPLETED)
    answers[withdrawn.hold.id] = [withdrawn, settled]

    found = await books.reader.transactions_of_holds(OPERATOR, [*answers, new_id()])

    assert found == {
        hold_id: tuple(answer.transaction for answer in given) for hold_id, given in answers.items()
    }
    assert {each.hold_id for each in found[withdrawn.hold.id]} == {withdrawn.hold.id}


async def test_the_account_of_a_hold_is_told_whatever_its_tracking(books: RunningLedger) -> None:
    alice = await books.wallet("alice", 10)
    account = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=2)
    shop = Wallet(account, wallet_user("shop"))
    await books.deposit(account, 10)
    holds = [(await place(books, wallet)).hold.id for wallet in (alice, shop)]

    assert await books.reader.accounts_of_holds([*holds, new_id()]) == {
        holds[0]: alice.account,
        holds[1]: shop.account,
    }


async def test_holds_are_paged_newest_first_and_withdrawals_are_not_among_them(
    books: RunningLedger,
) -> None:
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    made: list[Hold] = []
    for number in range(11):
        hold = (await place(books, alice)).hold
        if number % 3 == 1:
            hold = (await capture(books, hold, bob, 1)).hold
        elif number % 3 == 2:
            hold = (await void(books, hold)).hold
        made.insert(0, hold)
        await withdraw(books, alice)
    await place(books, await books.wallet("carol", 5))

    for status in (None, *HoldStatus):
        expected = [hold for hold in made if status in {None, hold.status}]
        for limit in (1, 3, 20):
            for backward in (False, True):
                met: list[Hold] = []
                request: PageRequest[UUID] = PageRequest(limit, backward=backward)
                while True:
                    page = await books.reader.holds_page(alice.account, status, request)
                    met = [*page.items, *met] if backward else [*met, *page.items]
                    assert len(page.items) <= limit
                    if not (page.has_previous if backward else page.has_next):
                        break
                    request = (
                        PageRequest(limit, before=page.items[0].id, backward=True)
                        if backward
                        else PageRequest(limit, after=page.items[-1].id)
                    )
                assert met == expected


@pytest.mark.parametrize("tracking", [BalanceTracking.TRACKED, BalanceTracking.STRIPED])
async def test_what_is_held_counts_as_posted_now_and_at_any_instant(
    books: RunningLedger, tracking: BalanceTracking
) -> None:
    account = await books.open(owner="shop", tracking=tracking)
    shop, bob = Wallet(account, wallet_user("shop")), await books.wallet("bob")
    for _ in range(4):
        await books.deposit(account, 25)

    placed = await place(books, shop, 60)
    captured = await capture(books, placed.hold, bob, 50)

    before, after = placed.transaction.posted_at, captured.transaction.posted_at
    at = books.reader.balances_at
    assert await at([account.id, bob.id], before) == {account.id: 100, bob.id: 0}
    assert await at([account.id, bob.id], after) == {account.id: 50, bob.id: 50}
    assert await at([account.id], datetime(2020, 1, 1, tzinfo=UTC)) == {account.id: 0}
    balance = await books.balance(account)
    assert (balance.available, balance.held) == (50, 0)


async def test_what_moved_an_account_last_may_have_moved_what_it_holds(
    books: RunningLedger,
) -> None:
    """All that is held goes on to somebody else: the account itself has no line in that."""
    account = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=3)
    await books.deposit(account, 50)
    striped, bob = Wallet(account, wallet_user("shop")), await books.wallet("bob")
    for wallet in (await books.wallet("alice", 50), striped):
        placed = await place(books, wallet, 30)
        assert await books.reader.last_transactions([wallet.id]) == {
            wallet.id: placed.transaction.id
        }
        captured = await capture(books, placed.hold, bob, 30)
        assert await books.reader.last_transactions([wallet.id, bob.id, new_id()]) == {
            wallet.id: captured.transaction.id,
            bob.id: captured.transaction.id,
        }
    nobody = await books.wallet("dave")
    assert await books.reader.last_transactions([nobody.id]) == {}

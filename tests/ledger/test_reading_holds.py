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
from app.ledger.pages import HoldFilter
from tests.support.ledger import OPERATOR, RunningLedger, Wallet, new_id, new_key, vnd, wallet_user
from tests.support.paging import walk

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
    assert await ask.holds(alice.owner, [placed.id]) == {placed.id: placed}

    captured = (await capture(books, placed, bob, 20)).hold
    assert (captured.status, captured.captured) == (HoldStatus.CAPTURED, 20)
    assert await ask.holds(alice.owner, [placed.id]) == {placed.id: captured}

    voided = (await void(books, (await place(books, alice)).hold)).hold
    assert voided.status is HoldStatus.VOIDED

    asked = (await withdraw(books, alice, 5)).hold
    assert asked.purpose is HoldPurpose.WITHDRAWAL
    failed = (await settle(books, asked, SettlementOutcome.FAILED, "account unknown")).hold
    assert failed.failure_reason == "account unknown"
    assert await ask.holds(alice.owner, [asked.id, voided.id, new_id()]) == {
        asked.id: failed,
        voided.id: voided,
    }


@pytest.mark.parametrize("scopes", EVERY_SET_OF_SCOPES)
async def test_who_may_read_a_hold_or_a_withdrawal(
    books: RunningLedger, scopes: frozenset[Scope]
) -> None:
    alice, bob = await books.wallet("alice", 100), await books.wallet("bob")
    placed = await place(books, alice, 5)
    captured = await capture(books, placed.hold, bob, 5)
    withdrawn = await withdraw(books, alice)
    dave = await place(books, await books.wallet("dave", 5))
    audits, owns, ask = Scope.AUDIT in scopes, Scope.WALLET in scopes, books.reader
    of_alice = {captured.hold.id: captured.hold, withdrawn.hold.id: withdrawn.hold}
    everybodys = {**of_alice, dave.hold.id: dave.hold}

    for subject in ("alice", "bob", "eve"):
        caller = Caller(subject, scopes)
        readable = audits or (owns and subject == "alice")
        found = await ask.holds(caller, [*everybodys, new_id()])
        assert found == (everybodys if audits else of_alice if readable else {})
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


async def make_holds(books: RunningLedger, *wallets: Wallet) -> list[Hold]:
    """Make holds and withdrawals of every status but EXPIRED, in turn of each wallet, and return them newest first."""
    bob = await books.wallet("bob")
    made: list[Hold] = []
    for number in range(12):
        wallet = wallets[number % len(wallets)]
        hold = (await place(books, wallet)).hold
        withdrawal = (await withdraw(books, wallet)).hold
        match number % 3:
            case 1:
                hold = (await capture(books, hold, bob, 1)).hold
                withdrawal = (await settle(books, withdrawal, SettlementOutcome.COMPLETED)).hold
            case 2:
                hold = (await void(books, hold)).hold
                withdrawal = (await settle(books, withdrawal, SettlementOutcome.FAILED)).hold
            case _:
                pass
        made = [withdrawal, hold, *made]
    return made


@pytest.mark.parametrize("purpose", HoldPurpose)
async def test_an_account_s_holds_and_its_withdrawals_are_paged_newest_first(
    books: RunningLedger, purpose: HoldPurpose
) -> None:
    alice, carol = await books.wallet("alice", 100), await books.wallet("carol", 100)
    made = await make_holds(books, alice, carol)

    for wallet in (alice, carol):
        for status in (None, *HoldStatus):
            wanted = HoldFilter(purpose, status)
            expected = [
                hold for hold in made if hold.account_id == wallet.id and meets(hold, wanted)
            ]
            assert bool(expected) is (status is not HoldStatus.EXPIRED)
            for limit in (1, 3, 20):
                for backward in (False, True):
                    met = await walk(
                        lambda request, wallet=wallet, wanted=wanted: books.reader.holds_of_account(
                            wallet.account, wanted, request
                        ),
                        limit,
                        backward=backward,
                    )
                    assert met == expected


@pytest.mark.parametrize("purpose", HoldPurpose)
async def test_everybody_s_holds_and_withdrawals_are_paged_newest_first(
    books: RunningLedger, purpose: HoldPurpose
) -> None:
    made = await make_holds(
        books, await books.wallet("alice", 100), await books.wallet("carol", 100)
    )

    for status in (None, *HoldStatus):
        wanted = HoldFilter(purpose, status)
        for limit in (1, 5, 20):
            for backward in (False, True):
                met = await walk(
                    lambda request, wanted=wanted: books.reader.holds_page(
                        OPERATOR, wanted, request
                    ),
                    limit,
                    backward=backward,
                )
                assert met == [hold for hold in made if meets(hold, wanted)]


def meets(hold: Hold, wanted: HoldFilter) -> bool:
    return hold.purpose is wanted.purpose and wanted.status in {None, hold.status}


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

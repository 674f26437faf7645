"""Holds as their owners and operators see them: every unit is captured or released, once, and goes back where it came from."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from app.ledger.answers import HoldAnswer, HoldPosted
from app.ledger.errors import CaptureExceedsHold, HoldExpired, HoldNotOpen
from app.ledger.model import Account, BalanceTracking, Hold, HoldStatus
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.posting.decision import Refused
from tests.support.ledger import OPERATOR, RunningLedger, Wallet, contents, new_key, vnd
from tests.support.postgres import TestDatabase, connect

FAR_AWAY = datetime(2100, 1, 1, tzinfo=UTC)
AMOUNT = ("amount", "minorUnits")


async def place(books: RunningLedger, account: Account | Wallet, minor_units: int = 100) -> Hold:
    command = PlaceHoldCommand(new_key(), account.id, vnd(minor_units), FAR_AWAY)
    return held(await books.ledger.place_hold(OPERATOR, command)).hold


async def capture(
    books: RunningLedger, hold: Hold, target: Account | Wallet, minor_units: int | None = None
) -> HoldAnswer:
    amount = None if minor_units is None else vnd(minor_units)
    command = CaptureHoldCommand(new_key(), hold.id, target.id, amount)
    return await books.ledger.capture_hold(OPERATOR, command)


async def void(books: RunningLedger, hold: Hold) -> HoldAnswer:
    return await books.ledger.void_hold(OPERATOR, VoidHoldCommand(new_key(), hold.id))


def held(answer: HoldAnswer) -> HoldPosted:
    """Take it for granted that the answer is of a hold."""
    assert isinstance(answer, HoldPosted), answer
    return answer


async def let_time_pass(database: TestDatabase) -> None:
    """Put the end of every open hold into the past; only the superuser can."""
    async with connect(database.superuser_url) as connection:
        await connection.execute(
            "update hold set expires_at = clock_timestamp() where status = 'OPEN'"
        )


async def balances_of_stripes(books: RunningLedger, account: Account) -> list[int]:
    query = (
        "select balance from account where parent_id = $1 and purpose = 'STRIPE' order by stripe"
    )
    async with connect(books.url) as connection:
        return [row["balance"] for row in await connection.fetch(query, account.id)]


# ---------------------------------------------------------------- once


async def test_l15_what_a_capture_leaves_is_released_by_the_same_transaction(
    books: RunningLedger,
) -> None:
    wallet, shop = await books.wallet("alice", 100), await books.wallet("shop")
    hold = await place(books, wallet)

    answer = held(await capture(books, hold, shop, 60))

    assert [(leg.account_id, leg.amount) for leg in answer.transaction.legs] == [
        (wallet.id, -100),
        (shop.id, 60),
        (wallet.id, 40),
    ]
    assert (answer.hold.status, answer.hold.captured) == (HoldStatus.CAPTURED, 60)
    balance = await books.balance(wallet)
    assert (balance.available, balance.held) == (40, 0)
    assert await books.available(shop) == 60


async def test_l15_more_than_is_held_is_not_captured(books: RunningLedger) -> None:
    wallet, shop = await books.wallet("alice", 1_000), await books.wallet("shop")
    hold = await place(books, wallet)
    before = await contents(books.url)

    assert await capture(books, hold, shop, 101) == Refused(
        CaptureExceedsHold(AMOUNT, currency="VND", held=100)
    )
    assert await contents(books.url) == before


End = Callable[[RunningLedger, Hold, Wallet], Awaitable[HoldAnswer]]

ENDS: dict[str, tuple[HoldStatus, End]] = {
    "a capture in part": (HoldStatus.CAPTURED, lambda b, hold, shop: capture(b, hold, shop, 60)),
    "a capture": (HoldStatus.CAPTURED, capture),
    "a void": (HoldStatus.VOIDED, lambda b, hold, _: void(b, hold)),
}


@pytest.mark.parametrize("second", ENDS)
@pytest.mark.parametrize("first", ENDS)
async def test_l15_a_hold_that_has_ended_does_not_end_again(
    books: RunningLedger, first: str, second: str
) -> None:
    wallet, shop = await books.wallet("alice", 1_000), await books.wallet("shop")
    hold = await place(books, wallet)
    status, end = ENDS[first]
    held(await end(books, hold, shop))
    before = await contents(books.url)

    _, end_again = ENDS[second]
    assert await end_again(books, hold, shop) == Refused(HoldNotOpen(("holdId",), status))
    assert await contents(books.url) == before


async def test_l15_a_late_capture_is_refused_before_the_job_ran_and_after(
    books: RunningLedger, audited: TestDatabase
) -> None:
    wallet, shop = await books.wallet("alice", 100), await books.wallet("shop")
    hold = await place(books, wallet)
    await let_time_pass(audited)
    before = await contents(books.url)

    assert await capture(books, hold, shop) == Refused(HoldExpired(("holdId",)))
    assert await contents(books.url) == before

    assert await books.upkeep.expire_holds() == 1
    before = await contents(books.url)
    assert await capture(books, hold, shop) == Refused(HoldExpired(("holdId",)))
    assert await void(books, hold) == Refused(HoldNotOpen(("holdId",), HoldStatus.EXPIRED))
    assert await contents(books.url) == before
    assert await books.available(wallet) == 100


async def test_l15_an_overdue_hold_may_still_be_voided(
    books: RunningLedger, audited: TestDatabase
) -> None:
    wallet = await books.wallet("alice", 100)
    hold = await place(books, wallet)
    await let_time_pass(audited)

    assert held(await void(books, hold)).hold.status == HoldStatus.VOIDED
    assert await books.upkeep.expire_holds() == 0
    assert await books.available(wallet) == 100


async def test_l15_the_key_of_a_hold_whose_answer_was_lost_finds_the_hold(
    books: RunningLedger,
) -> None:
    """However far the hold has gone on meanwhile."""
    wallet, shop = await books.wallet("alice", 100), await books.wallet("shop")
    command = PlaceHoldCommand("lost", wallet.id, vnd(100))
    first = held(await books.ledger.place_hold(OPERATOR, command))
    held(await capture(books, first.hold, shop, 60))
    before = await contents(books.url)

    again = held(await books.ledger.place_hold(OPERATOR, command))

    assert again.replayed
    assert again.transaction == first.transaction
    assert (again.hold.id, again.hold.status) == (first.hold.id, HoldStatus.CAPTURED)
    assert await contents(books.url) == before


# ---------------------------------------------------------------- over several stripes


@pytest.mark.parametrize("end", ["void", "expiry", "capture"])
async def test_l15_each_stripe_gets_back_its_own_part(
    books: RunningLedger, audited: TestDatabase, end: str
) -> None:
    """Money that moved between the stripes in the meantime doesn't change where a part belongs."""
    account = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=4)
    for _ in range(60):
        await books.deposit(account, 10)
    before = await balances_of_stripes(books, account)
    hold = await place(books, account, sum(before) - 1)
    gave = [
        had - has
        for had, has in zip(before, await balances_of_stripes(books, account), strict=True)
    ]
    assert sum(given > 0 for given in gave) > 1
    for _ in range(20):
        await books.deposit(account, 10)
    meanwhile = await balances_of_stripes(books, account)

    back = sum(gave)
    match end:
        case "void":
            held(await void(books, hold))
        case "expiry":
            await let_time_pass(audited)
            assert await books.upkeep.expire_holds() == 1
        case _:
            held(await capture(books, hold, await books.wallet("bob"), 250))
            back -= 250

    now = await balances_of_stripes(books, account)
    returned = [has - had for had, has in zip(meanwhile, now, strict=True)]
    assert sum(returned) == back
    if end == "capture":
        assert all(0 <= part <= given for part, given in zip(returned, gave, strict=True))
    else:
        assert returned == gave
    assert (await books.balance(account)).held == 0

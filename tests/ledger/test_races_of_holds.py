"""Two processes want to end the same holds, or the same withdrawals: each ends once, and in one way.

A process reads a hold when the lock on the account's held child is its own. Where that is read before the locks, both
find the hold open; the held child has no money left for the second, so it is refused for lack of funds, or becomes an
incident at the trigger that lets a hold be closed once.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from app.ledger.answers import HoldPosted
from app.ledger.errors import HoldExpired
from app.ledger.model import Account, Hold, HoldStatus
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand
from app.ledger.movements.withdrawals import SettlementOutcome, WithdrawCommand
from app.ledger.posting.decision import Refused
from tests.processes.waiting import until
from tests.support import calls
from tests.support.ledger import OPERATOR, RunningLedger, Wallet, new_key, vnd
from tests.support.postgres import TestDatabase, connect, scalar
from tests.support.servers import DONE, POSTED, Answer, Call, Servers

HELD = 100
ROUNDS = 30
FAR_AWAY = datetime(2100, 1, 1, tzinfo=UTC)

WAITS_FOR_LOCK = """
select count(*) > 0 from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name = 'saldo-postings'
"""


async def wallets(books: RunningLedger, count: int = ROUNDS) -> list[Wallet]:
    return list(
        await asyncio.gather(*(books.wallet(f"owner {number}", HELD) for number in range(count)))
    )


async def holds_on(
    books: RunningLedger, owners: Sequence[Wallet], expires_at: datetime | None = None
) -> list[Hold]:
    """Hold all that each wallet has."""
    answers = await asyncio.gather(
        *(
            books.ledger.place_hold(
                OPERATOR, PlaceHoldCommand(new_key(), wallet.id, vnd(HELD), expires_at)
            )
            for wallet in owners
        )
    )
    return [answer.hold for answer in answers if isinstance(answer, HoldPosted)]


async def withdrawals_of(books: RunningLedger, owners: Sequence[Wallet]) -> list[Hold]:
    answers = await asyncio.gather(
        *(
            books.ledger.withdraw(wallet.owner, WithdrawCommand(new_key(), wallet.id, vnd(HELD)))
            for wallet in owners
        )
    )
    return [answer.hold for answer in answers if isinstance(answer, HoldPosted)]


async def statuses(books: RunningLedger) -> list[HoldStatus]:
    """Read what became of all holds, in the order in which they were placed."""
    async with connect(books.url) as connection:
        rows = await connection.fetch("select status from hold order by id")
    return [HoldStatus(row["status"]) for row in rows]


async def race(
    books: RunningLedger, servers: Servers, *contestants: Sequence[Call]
) -> list[tuple[Answer, ...]]:
    """Let each process make its calls, all in the same order, and return the answers that belong together."""
    answers = await servers.post(books.url, *(calls.in_rows(each) for each in contestants))
    return list(zip(*map(calls.dealt_back, answers), strict=True))


def outcomes_of(answers: Sequence[Answer]) -> set[str]:
    return {answer.outcome for answer in answers}


async def test_a_hold_is_captured_once(books: RunningLedger, two_servers: Servers) -> None:
    owners, shop = await wallets(books), await books.wallet("shop")
    holds = await holds_on(books, owners)

    def captures() -> list[Call]:
        return [calls.capture_hold(hold, shop, 60) for hold in holds]

    for answers in await race(books, two_servers, captures(), captures()):
        assert outcomes_of(answers) == {POSTED, "HOLD_NOT_OPEN"}
    assert await books.available(shop) == 60 * ROUNDS
    assert {await books.available(wallet) for wallet in owners} == {40}
    assert set(await statuses(books)) == {HoldStatus.CAPTURED}


async def test_a_hold_is_captured_or_voided(books: RunningLedger, two_servers: Servers) -> None:
    owners, shop = await wallets(books), await books.wallet("shop")
    holds = await holds_on(books, owners)

    raced = await race(
        books,
        two_servers,
        [calls.capture_hold(hold, shop) for hold in holds],
        [calls.void_hold(hold) for hold in holds],
    )

    captured = 0
    for wallet, status, answers in zip(owners, await statuses(books), raced, strict=True):
        assert outcomes_of(answers) == {POSTED, "HOLD_NOT_OPEN"}
        was_captured = answers[0].outcome == POSTED
        assert status == (HoldStatus.CAPTURED if was_captured else HoldStatus.VOIDED)
        assert await books.available(wallet) == (0 if was_captured else HELD)
        captured += was_captured
    assert await books.available(shop) == captured * HELD


async def test_a_withdrawal_is_completed_or_failed(
    books: RunningLedger, two_servers: Servers
) -> None:
    owners = await wallets(books)
    withdrawals = await withdrawals_of(books, owners)

    raced = await race(
        books,
        two_servers,
        [calls.settle(each, SettlementOutcome.COMPLETED) for each in withdrawals],
        [calls.settle(each, SettlementOutcome.FAILED) for each in withdrawals],
    )

    for wallet, status, answers in zip(owners, await statuses(books), raced, strict=True):
        assert outcomes_of(answers) == {POSTED, "WITHDRAWAL_NOT_PENDING"}
        completed = answers[0].outcome == POSTED
        assert status == (HoldStatus.CAPTURED if completed else HoldStatus.VOIDED)
        balance = await books.balance(wallet)
        assert (balance.available, balance.held) == (0 if completed else HELD, 0)


async def test_a_hold_expires_once_though_two_processes_let_it(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """The key of an expiry is made from the hold, and the hold is looked at under the lock; either suffices."""
    owners = await wallets(books)
    await holds_on(books, owners, FAR_AWAY)
    await expire_all_in(audited, timedelta(0))

    a_few_at_a_time = [[Call("expire_holds", (2,))] * ROUNDS]
    answers = await two_servers.post(books.url, a_few_at_a_time, a_few_at_a_time)

    assert sum(answer.count for rows in answers for row in rows for answer in row) == ROUNDS
    assert set(await statuses(books)) == {HoldStatus.EXPIRED}
    assert {await books.available(wallet) for wallet in owners} == {HELD}


# ---------------------------------------------------------------- capture against expiry


async def expire_all_in(database: TestDatabase, wait: timedelta) -> datetime:
    """Let the time of all holds end so much later by the database's clock; only the superuser can."""
    query = "update hold set expires_at = clock_timestamp() + $1 returning expires_at"
    async with connect(database.superuser_url) as connection:
        rows = await connection.fetch(query, wait)
    return max(row["expires_at"] for row in rows)


async def test_l15_a_hold_is_captured_in_time_or_freed_as_a_whole(
    books: RunningLedger, audited: TestDatabase, two_servers: Servers
) -> None:
    """Captures come a little before and a little after the hold's time is over, while the other process lets holds expire."""
    owners, shop = await wallets(books), await books.wallet("shop")
    holds = await holds_on(books, owners, FAR_AWAY)
    over = await expire_all_in(audited, timedelta(seconds=1))
    step = timedelta(milliseconds=7)
    middle = ROUNDS // 2

    captures = [
        later(calls.capture_hold(hold, shop, 60), over + (number - middle) * step)
        for number, hold in enumerate(holds)
    ]
    expiries = [
        later(Call("expire_holds"), over + (number - middle) * step) for number in range(2 * ROUNDS)
    ]
    answers, jobs = await two_servers.post(
        books.url, [[capture] for capture in captures], [expiries]
    )

    # The shop's account was busy, so a capture that came in time may have been decided too late: then nothing moved.
    await books.upkeep.expire_holds()
    captured = 0
    for wallet, status, (answer,) in zip(owners, await statuses(books), answers, strict=True):
        balance = await books.balance(wallet)
        if answer.outcome == POSTED:
            assert status == HoldStatus.CAPTURED
            assert (balance.available, balance.held) == (40, 0)
            captured += 1
        else:
            assert answer.outcome == "HOLD_EXPIRED"
            assert status == HoldStatus.EXPIRED
            assert (balance.available, balance.held) == (HELD, 0)
    assert await books.available(shop) == 60 * captured
    assert outcomes_of(jobs[0]) == {DONE}


async def test_l15_a_capture_that_waits_until_the_time_is_over_comes_too_late(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """The clock is read, and the hold is looked at, when the locks have been had and not when they were asked for."""
    (owner,), shop = await wallets(books, 1), await books.wallet("shop")
    (hold,) = await holds_on(books, [owner], FAR_AWAY)
    async with connect(audited.superuser_url) as beside, beside.transaction():
        await beside.execute("select from account where id = $1 for update", owner.id)
        capture = asyncio.ensure_future(capture_all(books, hold, shop.account))
        await until(lambda: waits_for_lock(audited), "the capture waits for the lock")
        await expire_all_in(audited, timedelta(0))

    assert await capture == Refused(HoldExpired(("holdId",)))
    assert await books.upkeep.expire_holds() == 1
    assert await books.available(owner) == HELD


async def waits_for_lock(database: TestDatabase) -> bool:
    return await scalar(database.superuser_url, WAITS_FOR_LOCK)


async def capture_all(books: RunningLedger, hold: Hold, target: Account) -> HoldPosted | Refused:
    command = CaptureHoldCommand(new_key(), hold.id, target.id)
    return await books.ledger.capture_hold(OPERATOR, command)


def later(wanted: Call, instant: datetime) -> Call:
    return Call(wanted.method, wanted.arguments, wanted.options, not_before=instant)

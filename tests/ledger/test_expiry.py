"""The release of overdue holds: bounded, each hold once, and at an end only when nothing is due."""

import asyncio
from datetime import UTC, datetime

from app.ledger.answers import HoldPosted
from app.ledger.model import Account, Hold
from app.ledger.movements.holds import PlaceHoldCommand
from tests.support.ledger import OPERATOR, RunningLedger, contents, new_key, vnd
from tests.support.postgres import TestDatabase, connect, scalar

FAR_AWAY = datetime(2100, 1, 1, tzinfo=UTC)
OPEN_HOLDS = "select count(*) from hold where status = 'OPEN'"


async def place(books: RunningLedger, account: Account) -> Hold:
    command = PlaceHoldCommand(new_key(), account.id, vnd(1), expires_at=FAR_AWAY)
    answer = await books.ledger.place_hold(OPERATOR, command)
    assert isinstance(answer, HoldPosted)
    return answer.hold


async def let_time_pass(database: TestDatabase, *holds: Hold) -> None:
    """Put the end of holds into the past, the first of them the longest ago; only the superuser can."""
    async with connect(database.superuser_url) as connection:
        for minutes, hold in enumerate(reversed(holds), 1):
            await connection.execute(
                "update hold set expires_at = now() - make_interval(mins => $2) where id = $1",
                hold.id,
                minutes,
            )


async def test_the_longest_overdue_are_released_first_and_others_stay(
    books: RunningLedger, audited: TestDatabase
) -> None:
    wallet = await books.wallet("alice", 10)
    holds = [await place(books, wallet.account) for _ in range(4)]
    await let_time_pass(audited, *holds[:3])

    assert await books.upkeep.expire_holds(limit=2) == 2

    assert await scalar(
        books.url, "select array_agg(id order by id) from hold where status = 'OPEN'"
    ) == [hold.id for hold in holds[2:]]
    assert await books.upkeep.expire_holds() == 1
    before = await contents(books.url)
    assert await books.upkeep.expire_holds() == 0
    assert await contents(books.url) == before
    assert await books.available(wallet) == 9


async def test_o05_nobody_is_told_that_nothing_is_due_while_others_are_still_releasing(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """Whoever finds that others have released all that it wanted looks again; without that, several answer 0 too early."""
    wallet = await books.wallet("alice", 100)
    await let_time_pass(audited, *[await place(books, wallet.account) for _ in range(50)])

    released = await asyncio.gather(*(books.upkeep.expire_holds(limit=5) for _ in range(8)))

    left = await scalar(books.url, OPEN_HOLDS)
    assert sum(released) + left == 50
    assert left > 0
    assert 0 not in released

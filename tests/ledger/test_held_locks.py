"""Races that chance would seldom bring about, each staged with a lock that the test holds until the others wait for it."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import asyncpg

from app.ledger.administration import SetAccountStatusCommand
from app.ledger.answers import HoldPosted
from app.ledger.children import held_child_id, stripe_ids
from app.ledger.model import Account, AccountKind, AccountStatus, BalanceTracking
from app.ledger.movements.holds import PlaceHoldCommand
from tests.processes.waiting import until
from tests.support.ledger import (
    OPERATOR,
    PATIENT,
    RunningLedger,
    new_key,
    posted,
    running_ledger,
    vnd,
)
from tests.support.postgres import TestDatabase, connect, scalar

WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name like 'saldo%'
"""


async def somebody_waits(database: TestDatabase, how_many: int) -> None:
    async def waiting() -> bool:
        return await scalar(database.superuser_url, WAITING) >= how_many

    await until(waiting, f"{how_many} sessions waited for a lock")


async def lock(connection: "asyncpg.Connection[asyncpg.Record]", ids: Sequence[UUID]) -> None:
    await connection.execute(
        "select from account where id = any($1) order by id for no key update", ids
    )


async def test_two_processes_that_set_money_aside_for_the_first_time_make_one_held_child(
    audited: TestDatabase,
) -> None:
    """The second has looked for the child before it waited for the parent; fails without the second look."""
    async with (
        running_ledger(audited.runtime_url, PATIENT) as one,
        running_ledger(audited.runtime_url, PATIENT) as two,
        connect(audited.superuser_url) as holder,
    ):
        wallet = await one.wallet("alice", 1_000)
        transaction = holder.transaction()
        await transaction.start()
        await lock(holder, [wallet.id])
        placing = [
            asyncio.ensure_future(
                books.ledger.place_hold(OPERATOR, PlaceHoldCommand(new_key(), wallet.id, vnd(30)))
            )
            for books in (one, two)
        ]
        await somebody_waits(audited, 2)
        await transaction.commit()
        for answer in await asyncio.gather(*placing):
            assert isinstance(answer, HoldPosted)
        balance = await one.balance(wallet)
        assert (balance.available, balance.held) == (940, 60)
        children = "select array_agg(id) from account where purpose = 'HELD'"
        assert await scalar(audited.superuser_url, children) == [held_child_id(wallet.id)]


async def test_a_change_of_status_waits_for_every_stripe(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """A credit locks one stripe alone; fails where only the parent is locked."""
    shop = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=4)
    for stripe in stripe_ids(shop.id, 4):
        async with connect(audited.superuser_url) as holder:
            transaction = holder.transaction()
            await transaction.start()
            await lock(holder, [stripe])
            freezing = asyncio.ensure_future(set_status(books, shop, AccountStatus.FROZEN))
            await somebody_waits(audited, 1)
            assert not freezing.done()
            await transaction.rollback()
            assert isinstance(await freezing, Account)
        await set_status(books, shop, AccountStatus.ACTIVE)


async def test_who_posts_to_a_derived_account_does_not_overtake_a_change_of_its_status(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """One posting is under way, the change waits for it, and later postings wait for the change: it is never starved."""
    fees = await books.open(
        kind=AccountKind.REVENUE, allow_negative=True, tracking=BalanceTracking.DERIVED
    )
    wallet = await books.wallet("alice", 1_000)
    posted(await books.transfer(wallet, fees, 1))
    async with connect(audited.superuser_url) as holder:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute(
            "select pg_advisory_xact_lock_shared(23070, hashtext(cast($1 as text)))", str(fees.id)
        )
        freezing = asyncio.ensure_future(set_status(books, fees, AccountStatus.FROZEN))
        await somebody_waits(audited, 1)
        paying = asyncio.ensure_future(books.transfer(wallet, fees, 1))
        await somebody_waits(audited, 2)
        assert not paying.done()
        await transaction.rollback()
        assert isinstance(await freezing, Account)
        answer = await paying
    assert "AccountFrozen" in repr(answer)
    assert await books.available(fees) == 1


async def set_status(books: RunningLedger, account: Account, status: AccountStatus) -> object:
    return await books.ledger.set_account_status(
        OPERATOR, SetAccountStatusCommand(account.id, status)
    )

"""What the database refuses of holds and hot accounts, whoever asks."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.embedded import RunningPostgres
from app.ledger.answers import HoldPosted
from app.ledger.children import stripe_ids
from app.ledger.model import Account, AccountKind, BalanceTracking
from app.ledger.movements.holds import PlaceHoldCommand, VoidHoldCommand
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import (
    OPERATOR,
    RunningLedger,
    Wallet,
    contents,
    new_id,
    new_key,
    running_ledger,
    vnd,
)
from tests.support.postgres import TestDatabase, connect

WRITE = """
with moved as (
  update account as a
  set
    balance = case when $5 then a.balance + $4 else a.balance end,
    sequence = case when $5 then $3 else a.sequence end
  where a.id = $2
), paid as (
  update account as a
  set balance = a.balance - $4, sequence = a.sequence + 1, posted_at = statement_timestamp()
  where a.id = $6
), booked as (
  insert into journal (id, type, caller, effective_at, posted_at)
  values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())
)
insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
select $6, a.sequence + 1, $1, 0, a.currency, - cast($4 as bigint), a.balance - $4, statement_timestamp()
from account as a where a.id = $6
union all
select $2, $3, $1, 1, 'VND', $4, $7, statement_timestamp()
"""
"""Pay an amount from a wallet to a row: transaction, row, sequence, amount, whether the row moves, wallet, balance after."""


@dataclass(frozen=True, slots=True)
class Hot:
    """A database with a striped account, a derived one, an open hold and a closed one."""

    database: TestDatabase
    wallet: Wallet
    striped: Account
    derived: Account
    open_hold: UUID
    closed_hold: UUID

    async def refused(self, role: str, constraint: str, query: str, *arguments: Any) -> None:
        url = self.database.owner_url if role == "owner" else self.database.runtime_url
        before = await contents(self.database.superuser_url)
        async with connect(url) as connection:
            with pytest.raises(asyncpg.IntegrityConstraintViolationError) as caught:
                await connection.execute(query, *arguments)
        assert caught.value.constraint_name == constraint
        assert await contents(self.database.superuser_url) == before

    async def pay(
        self,
        role: str,
        constraint: str,
        row: UUID,
        sequence: int,
        *,
        moves: bool,
        after: int | None,
    ) -> None:
        await self.refused(
            role, constraint, WRITE, new_id(), row, sequence, 10, moves, self.wallet.id, after
        )


@pytest.fixture(scope="module")
async def hot(postgres: RunningPostgres, template_database: str) -> AsyncGenerator[Hot]:
    name = "database_rules_hot"
    postgres.create_database(name, template_database)
    database = TestDatabase.of(postgres, name)
    async with running_ledger(database.runtime_url) as books:
        yield await prepared(books, database)
    await assert_books_are_right(database.superuser_url)
    postgres.drop_database(name)


async def prepared(books: RunningLedger, database: TestDatabase) -> Hot:
    wallet = await books.wallet("alice", 1_000)
    striped = await books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=2)
    derived = await books.open(
        kind=AccountKind.REVENUE, allow_negative=True, tracking=BalanceTracking.DERIVED
    )
    for _ in range(8):
        await books.deposit(striped, 5)
    holds: list[UUID] = []
    for _ in range(2):
        placed = await books.ledger.place_hold(
            OPERATOR, PlaceHoldCommand(new_key(), wallet.id, vnd(30))
        )
        assert isinstance(placed, HoldPosted)
        holds.append(placed.hold.id)
    voided = await books.ledger.void_hold(OPERATOR, VoidHoldCommand(new_key(), holds[1]))
    assert isinstance(voided, HoldPosted)
    return Hot(database, wallet, striped, derived, holds[0], holds[1])


both_roles = pytest.mark.parametrize("role", ["runtime", "owner"])


@both_roles
async def test_a_stripe_is_a_chain_though_its_numbers_have_gaps(hot: Hot, role: str) -> None:
    stripe = stripe_ids(hot.striped.id, 2)[0]
    await hot.pay(role, "entry_follows_its_predecessor", stripe, 2**50, moves=True, after=9_999)
    # A number in the middle of the history, with a balance that would be right there.
    await hot.pay(role, "entry_follows_its_predecessor", stripe, 2, moves=False, after=10)


@both_roles
async def test_no_line_is_slipped_in_below_the_last_of_a_stripe(hot: Hot, role: str) -> None:
    """Its neighbours would no longer be a chain, though the account stands at its last line."""
    stripe = stripe_ids(hot.striped.id, 2)[0]
    await hot.refused(
        role,
        "entry_follows_its_predecessor",
        """
        with moved as (
          update account as a set balance = a.balance + 1, sequence = a.sequence + 256 where a.id = $2
        ), paid as (
          update account as a
          set balance = a.balance + 49, sequence = a.sequence + 1, posted_at = statement_timestamp()
          where a.id = $3
        ), booked as (
          insert into journal (id, type, caller, effective_at, posted_at)
          values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())
        )
        insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
        select id, 2, $1, 0, currency, -50, -50, statement_timestamp() from account where id = $2
        union all
        select id, sequence + 256, $1, 1, currency, 1, balance + 1, statement_timestamp() from account where id = $2
        union all
        select id, sequence + 1, $1, 2, currency, 49, balance + 49, statement_timestamp() from account where id = $3
        """,
        new_id(),
        stripe,
        hot.wallet.id,
    )


async def test_a_snapshot_is_the_sum_of_its_entries(hot: Hot) -> None:
    await hot.refused(
        "runtime",
        "snapshot_sums_entries",
        "insert into snapshot (account_id, sequence, balance, posted_at) values ($1, $2, 7, now())",
        hot.derived.id,
        2**60,
    )


@both_roles
async def test_a_striped_account_itself_never_moves(hot: Hot, role: str) -> None:
    await hot.pay(role, "account_hot_keeps_no_balance", hot.striped.id, 1, moves=True, after=10)
    await hot.pay(role, "account_stands_at_last_entry", hot.striped.id, 1, moves=False, after=10)


@both_roles
async def test_a_derived_account_keeps_no_balance_anywhere(hot: Hot, role: str) -> None:
    derived = hot.derived.id
    await hot.pay(role, "entry_follows_its_predecessor", derived, 2**50, moves=False, after=10)
    await hot.pay(role, "account_hot_keeps_no_balance", derived, 2**50, moves=True, after=None)


@both_roles
async def test_an_ordinary_entry_bears_the_balance_after_it(hot: Hot, role: str) -> None:
    other = hot.wallet.id
    await hot.refused(
        role,
        "entry_follows_its_predecessor",
        """
        with booked as (
          insert into journal (id, type, caller, effective_at, posted_at)
          values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())
        )
        insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
        select id, sequence + 1, $1, 0, currency, 10, cast(null as bigint), statement_timestamp() from account where id = $2
        union all
        select id, sequence + 2, $1, 1, currency, -10, cast(null as bigint), statement_timestamp() from account where id = $2
        """,
        new_id(),
        other,
    )


@both_roles
async def test_a_hold_closes_once(hot: Hot, role: str) -> None:
    close = "update hold set status = 'VOIDED', closed_at = statement_timestamp() where id = $1"
    await hot.refused(role, "hold_closes_once", close, hot.closed_hold)
    reopen = "update hold set status = 'OPEN', closed_at = null where id = $1"
    await hot.refused(role, "hold_closes_once", reopen, hot.closed_hold)


@both_roles
@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        (
            "captured = 31, status = 'CAPTURED', closed_at = now()",
            "hold_captures_at_most_its_amount",
        ),
        ("captured = 0, status = 'CAPTURED', closed_at = now()", "hold_captures_something"),
        ("captured = 1, status = 'VOIDED', closed_at = now()", "hold_captures_something"),
        ("status = 'VOIDED'", "hold_is_open_until_closed"),
    ],
)
async def test_a_hold_ends_in_one_of_its_ways(
    hot: Hot, role: str, change: str, constraint: str
) -> None:
    await hot.refused(role, constraint, f"update hold set {change} where id = $1", hot.open_hold)  # noqa: S608 - from the list above


@pytest.mark.parametrize(
    "query",
    [
        "update hold set amount = amount + 1",
        "update hold set account_id = id",
        "update hold set expires_at = now()",
        "delete from hold",
        "truncate hold",
        "update account_status_change set reason = 'none'",
        "delete from account_status_change",
        "update snapshot set balance = 0",
        "delete from snapshot",
        "update journal set hold_id = null",
        "update account set stripes = 4",
        "select setval('hot_stamp', 1)",
    ],
)
async def test_the_run_time_role_may_not(hot: Hot, query: str) -> None:
    before = await contents(hot.database.superuser_url)
    async with connect(hot.database.runtime_url) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(query)
    assert await contents(hot.database.superuser_url) == before


@pytest.mark.parametrize("query", ["delete from hold", "truncate hold", "delete from snapshot"])
async def test_nor_may_the_owner_take_away_what_was_booked(hot: Hot, query: str) -> None:
    before = await contents(hot.database.superuser_url)
    async with connect(hot.database.owner_url) as connection:
        with pytest.raises(asyncpg.RestrictViolationError):
            await connection.execute(query)
    assert await contents(hot.database.superuser_url) == before


@both_roles
async def test_what_takes_a_transaction_back_is_numbered_once(hot: Hot, role: str) -> None:
    """The net beneath two reversals that meet on accounts which nobody locks."""
    url = hot.database.owner_url if role == "owner" else hot.database.runtime_url
    write = """
        insert into journal (id, type, caller, reverses_id, reversal_number, effective_at, posted_at)
        select gen_random_uuid(), 'reversal', 'mallory', id, n, now(), now()
        from (select id from journal limit 1) as original, generate_series(1, 1) as n, generate_series(1, 2) as twice
    """
    before = await contents(hot.database.superuser_url)
    async with connect(url) as connection:
        with pytest.raises(asyncpg.UniqueViolationError) as caught:
            await connection.execute(write)
    assert caught.value.constraint_name == "journal_reversal"
    assert await contents(hot.database.superuser_url) == before

"""What the database itself refuses, whoever asks: raw SQL under the run-time role, and under the owner of the schema."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.embedded import RunningPostgres
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import RunningLedger, Wallet, contents, new_id, posted, running_ledger
from tests.support.postgres import TestDatabase, connect, scalar

WRITE = """
with moved as (
  update account as a
  set balance = a.balance + m.amount, sequence = a.sequence + 1, posted_at = statement_timestamp()
  from unnest(cast($2 as uuid[]), cast($3 as bigint[])) as m (id, amount)
  where a.id = m.id
), booked as (
  insert into journal (id, type, caller, effective_at, posted_at)
  values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())
)
insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
select a.id, a.sequence + 1, $1, m.leg, a.currency, m.amount, a.balance + m.amount, statement_timestamp()
from unnest(cast($2 as uuid[]), cast($3 as bigint[])) with ordinality as m (id, amount, leg)
join account as a on a.id = m.id
"""
"""A transaction that is right in everything but what a test makes wrong: ids of different accounts, and their amounts."""

JOIN_TRANSACTION = (
    WRITE.replace(
        "insert into journal", "select 1 where false and exists (select from journal) --", 1
    )
    .replace("values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())", "", 1)
    .replace("m.leg, a.currency", "100 + m.leg, a.currency")
)
"""Entries for a transaction that is there already; the accounts' rows follow, so that nothing but its age is wrong."""

JOURNAL = """
insert into journal (id, type, caller, effective_at, posted_at)
values ($1, 'raw', 'mallory', statement_timestamp(), statement_timestamp())
"""


class Raw:
    """Two wallets with money and one of another currency, and connections of the roles that may try."""

    def __init__(
        self, database: TestDatabase, a: Wallet, b: Wallet, yen: Wallet, booked: UUID
    ) -> None:
        self.database = database
        self.a, self.b, self.yen = a, b, yen
        self.booked = booked
        """A transaction between `a` and `b` that has been committed."""

    def url(self, role: str) -> str:
        return self.database.owner_url if role == "owner" else self.database.runtime_url

    async def refused(self, role: str, constraint: str, query: str, *arguments: Any) -> None:
        """Try a statement that a constraint must refuse, and make sure that nothing changed."""
        error = await self.fails(role, query, *arguments)
        assert isinstance(error, asyncpg.IntegrityConstraintViolationError)
        assert error.constraint_name == constraint

    async def forbidden(self, query: str, *arguments: Any) -> None:
        """Try a statement that the run-time role has no right to, and make sure that nothing changed."""
        error = await self.fails("runtime", query, *arguments)
        assert isinstance(error, asyncpg.InsufficientPrivilegeError)

    async def fails(self, role: str, query: str, *arguments: Any) -> Exception:
        before = await contents(self.database.superuser_url)
        async with connect(self.url(role)) as connection:
            with pytest.raises(asyncpg.PostgresError) as caught:
                await connection.execute(query, *arguments)
        assert await contents(self.database.superuser_url) == before
        return caught.value


async def prepared(books: RunningLedger, database: TestDatabase) -> Raw:
    a, b = await books.wallet("alice", 1_000), await books.wallet("bob", 500)
    yen = await books.wallet("carol", 700, currency="JPY")
    booked = posted(await books.transfer(a, b, 100))
    return Raw(database, a, b, yen, booked.transaction.id)


@pytest.fixture(scope="module")
async def raw(postgres: RunningPostgres, template_database: str) -> AsyncGenerator[Raw]:
    """Share one database among all that is refused, since a refusal leaves it as it was."""
    name = "database_rules"
    postgres.create_database(name, template_database)
    database = TestDatabase.of(postgres, name)
    async with running_ledger(database.runtime_url) as books:
        yield await prepared(books, database)
    await assert_books_are_right(database.superuser_url)
    postgres.drop_database(name)


both_roles = pytest.mark.parametrize("role", ["runtime", "owner"])


async def test_a_transaction_that_is_right_can_be_written(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """Otherwise the refusals below might come from a statement that nobody could ever carry out."""
    raw = await prepared(books, audited)
    async with connect(raw.database.runtime_url) as connection:
        await connection.execute(WRITE, new_id(), [raw.a.id, raw.b.id], [-7, 7])
        # It tells no event and books no key; those of the engine's transactions are checked by the audit.
        assert await connection.fetchval("select sum(amount) from entry") == 0
    assert (
        await scalar(
            raw.database.superuser_url, "select balance from account where id = $1", raw.a.id
        )
        == 1_000 - 100 - 7
    )
    with pytest.raises(AssertionError, match="exactly one event"):
        await assert_books_are_right(raw.database.superuser_url)
    async with connect(raw.database.superuser_url) as connection:
        await connection.execute(
            """
            insert into outbox (transaction_id, account_ids, sequences)
            select id, array[cast($1 as uuid)], array[cast(3 as bigint)] from journal where type = 'raw'
            """,
            raw.a.id,
        )
        await connection.execute(
            """
            insert into idempotency_key (caller, key, operation, fingerprint, fields, transaction_id)
            select caller, 'raw', 'raw', '', '{}', id from journal where type = 'raw'
            """
        )


# ---------------------------------------------------------------- zero sum


@both_roles
async def test_p12_a_transaction_sums_to_zero_in_each_currency(raw: Raw, role: str) -> None:
    wrong: list[tuple[list[UUID], list[int]]] = [
        ([raw.a.id], [-1]),
        ([raw.a.id], [1]),
        ([raw.a.id, raw.b.id], [-2, 1]),
        ([raw.a.id, raw.b.id], [1, 1]),
        ([raw.a.id, raw.yen.id], [-1, 1]),
        ([raw.a.id, raw.b.id, raw.yen.id], [-1, 2, -1]),
    ]
    for ids, amounts in wrong:
        await raw.refused(role, "transaction_sums_to_zero", WRITE, new_id(), ids, amounts)


@both_roles
async def test_p12_deferring_constraints_defers_no_check(raw: Raw, role: str) -> None:
    before = await contents(raw.database.superuser_url)
    async with connect(raw.url(role)) as connection:
        await connection.execute("begin")
        await connection.execute("set constraints all deferred")
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(WRITE, new_id(), [raw.a.id], [1])
        await connection.execute("rollback")
    assert await contents(raw.database.superuser_url) == before


@both_roles
async def test_a_transaction_has_entries(raw: Raw, role: str) -> None:
    await raw.refused(role, "transaction_has_entries", JOURNAL, new_id())


@both_roles
async def test_an_amount_is_never_zero(raw: Raw, role: str) -> None:
    await raw.refused(role, "entry_amount_check", WRITE, new_id(), [raw.a.id, raw.b.id], [0, 0])


@both_roles
async def test_an_entry_bears_the_currency_of_its_account(raw: Raw, role: str) -> None:
    query = WRITE.replace("a.currency, m.amount", "'USD', m.amount")
    await raw.refused(
        role, "entry_in_currency_of_account", query, new_id(), [raw.a.id, raw.yen.id], [-1, 1]
    )


# ---------------------------------------------------------------- append only


@both_roles
async def test_no_entry_joins_a_transaction_that_is_committed(raw: Raw, role: str) -> None:
    await raw.refused(
        role, "transaction_is_closed", JOIN_TRANSACTION, raw.booked, [raw.a.id, raw.b.id], [-1, 1]
    )


@both_roles
async def test_a_temporary_table_in_front_of_the_journal_deceives_no_check(
    raw: Raw, role: str
) -> None:
    before = await contents(raw.database.superuser_url)
    async with connect(raw.url(role)) as connection:
        await connection.execute("begin")
        await connection.execute("create temporary table journal (like public.journal)")
        await connection.execute(
            "insert into pg_temp.journal select * from public.journal where id = $1", raw.booked
        )
        with pytest.raises(asyncpg.CheckViolationError) as caught:
            await connection.execute(JOIN_TRANSACTION, raw.booked, [raw.a.id, raw.b.id], [-1, 1])
        await connection.execute("rollback")
    assert caught.value.constraint_name == "transaction_is_closed"
    assert await contents(raw.database.superuser_url) == before


@both_roles
async def test_an_account_stands_at_its_last_entry(raw: Raw, role: str) -> None:
    """The journal's row and its entries come by one statement, and the accounts' rows don't follow."""
    query = WRITE.replace("where a.id = m.id\n), booked", "where a.id = m.id and false\n), booked")
    await raw.refused(
        role, "account_stands_at_last_entry", query, new_id(), [raw.a.id, raw.b.id], [-1, 1]
    )
    skipping = WRITE.replace("set balance = a.balance + m.amount", "set balance = a.balance")
    await raw.refused(
        role, "account_stands_at_last_entry", skipping, new_id(), [raw.a.id, raw.b.id], [-1, 1]
    )


CHANGES = (
    "delete from journal",
    "delete from entry",
    "delete from idempotency_key",
    "delete from event",
    "truncate journal cascade",
    "truncate entry",
    "truncate idempotency_key",
    "truncate event",
    "update journal set description = 'nicer'",
    "update entry set amount = amount + 1",
    "update idempotency_key set key = 'another'",
    "update event set position = position + 1",
)


@pytest.mark.parametrize("change", CHANGES)
async def test_what_is_written_stays_as_it_is(raw: Raw, change: str) -> None:
    """The run-time role has no right to change it, and the owner meets the triggers, even where no row is there."""
    await raw.forbidden(change)
    error = await raw.fails("owner", change)
    assert isinstance(error, asyncpg.RestrictViolationError)
    assert "append only" in str(error)


# ---------------------------------------------------------------- balances


@both_roles
async def test_a_wallet_is_not_overdrawn_by_raw_sql(raw: Raw, role: str) -> None:
    overdraw = "update account set balance = -1 where id = $1"
    await raw.refused(role, "account_not_overdrawn", overdraw, raw.a.id)
    await raw.refused(
        role, "account_not_overdrawn", WRITE, new_id(), [raw.a.id, raw.b.id], [-901, 901]
    )


@both_roles
async def test_no_balance_moves_without_its_entry(raw: Raw, role: str) -> None:
    """Money that nothing explains is refused in either direction, and so is a sequence that skips."""
    for change in (
        "update account set balance = balance + 1 where id = $1",
        "update account set balance = balance - 1 where id = $1",
        "update account set sequence = sequence + 1 where id = $1",
    ):
        await raw.refused(role, "account_stands_at_last_entry", change, raw.a.id)


@both_roles
async def test_an_entry_goes_on_from_the_one_before_it(raw: Raw, role: str) -> None:
    """Zero sum and rows that follow, and still money from nothing: only the chain shows it."""
    from_nothing = WRITE.replace("a.balance + m.amount", "a.balance + m.amount + 1000")
    skipping = WRITE.replace("a.sequence + 1", "a.sequence + 2")
    for query in (from_nothing, skipping):
        await raw.refused(
            role, "entry_follows_its_predecessor", query, new_id(), [raw.a.id, raw.b.id], [-1, 1]
        )


@both_roles
async def test_a_row_is_not_put_back_to_an_older_entry(raw: Raw, role: str) -> None:
    async with connect(raw.database.superuser_url) as connection:
        older = await connection.fetchrow(
            "select sequence, balance_after from entry where account_id = $1 order by sequence limit 1",
            raw.a.id,
        )
    assert older is not None
    await raw.refused(
        role,
        "account_stands_at_last_entry",
        "update account set sequence = $2, balance = $3 where id = $1",
        raw.a.id,
        *older.values(),
    )


@both_roles
async def test_nor_is_an_account_that_debits_raise(raw: Raw, role: str) -> None:
    async with connect(raw.database.owner_url) as connection:
        asset = new_id()
        await connection.execute(
            "insert into account (id, kind, currency) values ($1, 'ASSET', 'VND')", asset
        )
    await raw.refused(role, "account_not_overdrawn", WRITE, new_id(), [raw.a.id, asset], [-1, 1])


async def test_a_sequence_is_never_taken_twice(raw: Raw) -> None:
    query = WRITE.replace("sequence = a.sequence + 1", "sequence = a.sequence").replace(
        "a.id, a.sequence + 1, $1", "a.id, a.sequence, $1"
    )
    await raw.refused("owner", "entry_pkey", query, new_id(), [raw.a.id, raw.b.id], [-1, 1])


# ---------------------------------------------------------------- rights of the run-time role


@pytest.mark.parametrize(
    "query",
    [
        "insert into account (id, kind, currency, balance) values (gen_random_uuid(), 'LIABILITY', 'VND', 1)",
        "insert into account (id, kind, currency, sequence) values (gen_random_uuid(), 'LIABILITY', 'VND', 1)",
        "update account set allow_negative = true",
        "update account set owner = 'mallory'",
        "update account set kind = 'EXPENSE'",
        "update account set currency = 'USD'",
        "delete from account",
        "truncate account cascade",
        "update outbox set transaction_id = gen_random_uuid()",
        "truncate outbox",
        "insert into relay_lane (lane) values (1)",
        "delete from relay_lane",
        "update schema_version set version_num = '0000'",
        "set session_replication_role = replica",
        "alter table entry disable trigger all",
        "alter table entry disable trigger entries_checked",
        "drop trigger journal_append_only on journal",
        "drop table entry cascade",
        "alter table account drop constraint account_not_overdrawn",
        "create or replace function check_entries() returns trigger language plpgsql as 'begin return null; end'",
        "alter function check_entries() set search_path = pg_temp",
        "create table public.mine (id int)",
        "set role saldo_owner",
        "set role saldo_superuser",
        "set session authorization saldo_owner",
        "grant saldo_owner to saldo_runtime",
        "create role mallory superuser",
        "copy entry to program 'true'",
    ],
)
async def test_the_run_time_role_has_no_other_rights(raw: Raw, query: str) -> None:
    await raw.forbidden(query)


async def test_the_run_time_role_writes_durably(raw: Raw) -> None:
    async with connect(raw.database.runtime_url) as connection:
        assert await connection.fetchval("show synchronous_commit") == "on"

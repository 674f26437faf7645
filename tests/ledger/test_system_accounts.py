"""The platform's own accounts are opened when they are first needed, once, whoever needs them at the same moment."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from app.database import Database
from app.ledger.accounts import OpenAccountCommand
from app.ledger.errors import InvalidInput, LedgerUnavailableError
from app.ledger.model import AccountKind
from app.ledger.posting.decision import Refused
from app.ledger.system_accounts import SystemAccounts
from tests.processes.waiting import until
from tests.support.ledger import OPERATOR, RunningLedger, contents, new_id, new_key
from tests.support.postgres import TestDatabase, connect, scalar

WAITERS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
async def database(audited: TestDatabase) -> AsyncGenerator[Database]:
    pool = Database(audited.runtime_url, pool_size=10, pool_timeout_ms=30_000)
    yield pool
    await pool.close()


@pytest.fixture
def accounts(database: Database) -> SystemAccounts:
    return SystemAccounts(database, new_id)


async def test_each_currency_has_a_clearing_and_an_opening_account(
    books: RunningLedger, accounts: SystemAccounts
) -> None:
    clearing, opening = await accounts.clearing("BRL"), await accounts.opening("BRL")
    foreign = await accounts.opening("JPY")

    expected = {
        "system:bank_clearing:BRL": (clearing, AccountKind.ASSET, "BRL"),
        "system:opening:BRL": (opening, AccountKind.EQUITY, "BRL"),
        "system:opening:JPY": (foreign, AccountKind.EQUITY, "JPY"),
    }
    for code, facts in expected.items():
        account = await books.reader.account_by_code(OPERATOR, code)
        assert account is not None
        assert (account.id, account.kind, account.currency) == facts
        assert account.allow_negative
        assert account.owner is None


async def test_an_account_that_is_there_is_found_and_not_opened_again(
    audited: TestDatabase, database: Database, accounts: SystemAccounts
) -> None:
    first = await accounts.opening("BRL")
    before = await contents(audited.superuser_url)

    assert await accounts.opening("BRL") == first
    assert await SystemAccounts(database, new_id).opening("BRL") == first
    assert await contents(audited.superuser_url) == before


async def test_many_who_need_one_at_the_same_moment_open_it_once(
    audited: TestDatabase, database: Database
) -> None:
    found = await asyncio.gather(
        *(SystemAccounts(database, new_id).opening("BRL") for _ in range(20))
    )

    assert len(set(found)) == 1
    assert await scalar(audited.superuser_url, "select count(*) from account") == 1


async def test_who_loses_the_race_finds_what_the_winner_has_opened(
    audited: TestDatabase, accounts: SystemAccounts
) -> None:
    """Without the second attempt this fails: the statement began before the winner's commit, so it sees no row."""
    winner = new_id()
    async with connect(audited.superuser_url) as connection, asyncio.TaskGroup() as tasks:
        async with connection.transaction():
            await connection.execute(
                """
                insert into account (id, code, kind, currency, allow_negative)
                values ($1, 'system:opening:BRL', 'EQUITY', 'BRL', true)
                """,
                winner,
            )
            loser = tasks.create_task(accounts.opening("BRL"))

            async def loser_waits() -> bool:
                return await scalar(audited.superuser_url, WAITERS) == 1

            await until(loser_waits, "the other waits for the code")
        assert await loser == winner


@pytest.mark.parametrize(
    "code", ["system:opening:BRL", "system:opening:XXX", "System:Opening:BRL", "system:opening:"]
)
async def test_nobody_else_opens_an_account_with_such_a_code(
    books: RunningLedger, code: str
) -> None:
    before = await contents(books.url)

    answer = await books.ledger.open_account(
        OPERATOR,
        OpenAccountCommand(
            key=new_key(), currency="BRL", owner=None, code=code, kind=AccountKind.EQUITY
        ),
    )

    assert answer == Refused(InvalidInput(("code",), "must not begin with system:opening:"))
    assert await contents(books.url) == before


async def test_a_database_that_is_out_of_reach_is_unavailable() -> None:
    nowhere = Database("postgresql://127.0.0.1:1/nowhere", pool_timeout_ms=100)
    accounts = SystemAccounts(nowhere, new_id)

    with pytest.raises(LedgerUnavailableError):
        await accounts.opening("BRL")
    await nowhere.close()

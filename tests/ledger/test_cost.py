"""What a statement costs: only index probes on the big tables, as many round trips for one as for two hundred, no squares.

Measured in plans, in rows and blocks read, and in statements, never in time.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app import ledger
from app.driver import DriverConnections, load_driver_statements
from app.embedded import RunningPostgres
from app.ledger.answers import HoldPosted
from app.ledger.idempotency import fingerprint
from app.ledger.model import Account, BalanceTracking, Direction, HoldPurpose, HoldStatus
from app.ledger.movements.holds import PlaceHoldCommand
from app.ledger.movements.withdrawals import WithdrawCommand
from app.ledger.pages import AccountFilter, EntryFilter, HoldFilter, PageRequest, TransactionFilter
from app.ledger.posting.decision import Posted
from app.ledger.posting.engine import EngineLimits
from app.ledger.requests import PostingRequest, RequestedLeg
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import (
    OPERATOR,
    RunningLedger,
    new_id,
    new_key,
    running_ledger,
    vnd,
    wallet_user,
)
from tests.support.postgres import TestDatabase, connect

SQL = Path(ledger.__file__).parent / "posting" / "sql"

GROWING = ("account", "entry", "journal", "idempotency_key", "hold", "snapshot")

CROWD = 10_000
HOLDS = 500

OPEN_A_CROWD = """
insert into account (id, owner, kind, currency, allow_negative)
select gen_random_uuid(), 'crowd', 'LIABILITY', 'VND', false from generate_series(1, $1)
"""

FORWARD: PageRequest[int] = PageRequest(20)
BACKWARD: PageRequest[int] = PageRequest(20, backward=True)
FORWARD_BY_ID: PageRequest[UUID] = PageRequest(20)
BACKWARD_BY_ID: PageRequest[UUID] = PageRequest(20, backward=True)
THREE: PageRequest[UUID] = PageRequest(3)
THREE_BACKWARD: PageRequest[UUID] = PageRequest(3, backward=True)

ONE_AT_A_TIME = EngineLimits(in_flight=1, deadline_ms=30_000)


class Crowd:
    """A ledger with ten thousand wallets, each with an entry, and one account that took part in all of them.

    Some of the wallets have a hold.
    """

    def __init__(
        self,
        database: TestDatabase,
        books: RunningLedger,
        bank: Account,
        ids: list[UUID],
        holds: list[UUID],
    ) -> None:
        self.database = database
        self.books = books
        self.bank = bank
        self.ids = ids
        self.holds = holds

    def request(self, legs: int) -> PostingRequest:
        """Make a posting with that many legs, half of them debits of as many wallets."""
        half = legs // 2
        amounts = [*([-1] * half), *([1] * half)]
        # The next in turn are taken, so that nobody runs out of money.
        self.ids = [*self.ids[legs:], *self.ids[:legs]]
        return request_of(list(zip(self.ids, amounts, strict=False)))


def request_of(legs: list[tuple[UUID, int]]) -> PostingRequest:
    return PostingRequest(
        id=new_id(),
        type="posting",
        caller=OPERATOR.subject,
        key=new_key(),
        fingerprint=fingerprint("posting", {}),
        legs=tuple(
            RequestedLeg(account_id, vnd(amount), ("legs",), ("legs",))
            for account_id, amount in legs
        ),
    )


@pytest.fixture(scope="module")
async def crowd(postgres: RunningPostgres, template_database: str) -> AsyncGenerator[Crowd]:
    """Fill one database for all that is measured; the engine itself makes the entries."""
    name = "crowd"
    postgres.create_database(name, template_database)
    database = TestDatabase.of(postgres, name)
    async with connect(database.owner_url) as connection:
        await connection.execute(OPEN_A_CROWD, CROWD)
        rows = await connection.fetch("select id from account order by id")
    ids = [row[0] for row in rows]
    async with running_ledger(database.runtime_url, ONE_AT_A_TIME) as books:
        bank = await books.clearing()
        groups = [
            (request_of([leg for one in part for leg in ((bank.id, -10), (one, 10))]),)
            for part in (ids[start : start + 10] for start in range(0, CROWD, 10))
        ]
        outcomes = await asyncio.gather(*(books.engine.post(group) for group in groups))
        assert all(isinstance(outcome, Posted) for (outcome,) in outcomes)
        placed = await asyncio.gather(
            *(
                books.ledger.place_hold(OPERATOR, PlaceHoldCommand(new_key(), one, vnd(1)))
                for one in ids[:HOLDS]
            )
        )
        holds = [answer.hold.id for answer in placed if isinstance(answer, HoldPosted)]
        assert len(holds) == HOLDS
        async with connect(database.owner_url) as connection:
            await connection.execute("analyze")
        yield Crowd(database, books, bank, ids, holds)
    await assert_books_are_right(database.superuser_url)
    postgres.drop_database(name)


# ---------------------------------------------------------------- plans


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def whole_reads(plan: Mapping[str, Any]) -> list[str]:
    """Name the tables that grow and that the plan reads from end to end."""
    return [
        f"{node['Node Type']} on {node['Relation Name']}"
        for node in nodes(plan)
        if node.get("Relation Name") in GROWING
        and node["Node Type"]
        not in {"Index Scan", "Index Only Scan", "Bitmap Heap Scan", "ModifyTable"}
    ]


@pytest.mark.parametrize("name", load_driver_statements(SQL / "posting.sql"))
async def test_the_posting_path_probes_indexes_and_reads_no_table(crowd: Crowd, name: str) -> None:
    """As the engine's own connections plan it, with no value known, which is the plan that a session keeps."""
    statement = load_driver_statements(SQL / "posting.sql")[name]
    nulls = f"({', '.join('null' for _ in statement.parameters)})" if statement.parameters else ""
    async with crowd.books.postings.transaction() as connection:
        await connection.execute("set local plan_cache_mode = force_generic_plan")
        await connection.execute(f"prepare probed as {statement.sql}")
        plans = await connection.fetchval(f"explain (format json) execute probed {nulls}")
        await connection.execute("deallocate probed")
    assert whole_reads(json.loads(plans)[0]["Plan"]) == []


async def test_the_reads_probe_indexes_and_read_no_table(crowd: Crowd) -> None:
    """Each statement as the server really runs it, by the server's own counters."""
    wallet, caller = crowd.ids[5_000], wallet_user("crowd")
    (account,) = (await crowd.books.reader.accounts(caller, [wallet])).values()
    (entry,) = await crowd.books.reader.entries_after(account, 0, 1)
    before = await reads(crowd.database)

    async with running_ledger(crowd.database.runtime_url) as books:
        ask = books.reader
        await ask.accounts(caller, [wallet])
        await ask.account_by_code(caller, "nothing")
        for page in (FORWARD_BY_ID, BACKWARD_BY_ID):
            await ask.own_accounts(caller, AccountFilter(currency="VND"), page)
            await ask.accounts_page(OPERATOR, AccountFilter(), page)
            await ask.accounts_page(OPERATOR, AccountFilter(owner="nobody"), page)
            for purpose in HoldPurpose:
                for status in (None, *HoldStatus):
                    await ask.holds_of_account(account, HoldFilter(purpose, status), page)
                    await ask.holds_page(OPERATOR, HoldFilter(purpose, status), page)
        for page in (THREE, THREE_BACKWARD):
            await ask.transactions_page(
                OPERATOR, TransactionFilter(("posting",), entry.posted_at), page
            )
        await ask.balances([wallet, crowd.bank.id])
        await ask.balances_at([wallet, crowd.bank.id], entry.posted_at)
        for newest_first in (False, True):
            for page in (FORWARD, BACKWARD):
                await ask.entry_page(crowd.bank, EntryFilter(), page, newest_first=newest_first)
        await ask.transactions(OPERATOR, [entry.transaction_id])
        await ask.transaction_by_key(OPERATOR, "nothing")
        await ask.last_transactions([wallet, crowd.bank.id])
        await ask.reversals([entry.transaction_id])
        await ask.holds(OPERATOR, crowd.holds[:3])
        await ask.transactions_of_holds(OPERATOR, crowd.holds[:3])
        await ask.accounts_of_holds(crowd.holds[:3])

    after = await reads(crowd.database)
    assert whole_tables_read(before, after) == {}
    assert rows_read(before, after) < 3_000


async def test_the_reads_of_hot_accounts_probe_indexes_and_read_no_table(crowd: Crowd) -> None:
    """Work grows with the stripes and with what is asked for, not with the history."""
    shop = await crowd.books.open(owner="shop", tracking=BalanceTracking.STRIPED, stripes=4)
    fees = await crowd.books.open(tracking=BalanceTracking.DERIVED, allow_negative=True)
    request = request_of(
        [leg for one in range(1, 251) for leg in ((fees.id, -one), (shop.id, one))]
    )
    for _ in range(4):
        (outcome,) = await crowd.books.engine.post((replace(request, id=new_id(), key=new_key()),))
        assert isinstance(outcome, Posted)
    (first,) = await crowd.books.reader.entries_after(fees, 0, 1)
    shop_balance = (await crowd.books.reader.balances([shop.id]))[shop.id]
    assert shop_balance.available == 4 * 125 * 251
    before = await reads(crowd.database)

    async with running_ledger(crowd.database.runtime_url) as books:
        ask = books.reader
        await ask.balances([shop.id])
        await ask.balances_at([shop.id], first.posted_at)
        await ask.last_transactions([shop.id, fees.id])
        for account in (shop, fees):
            for page in (FORWARD, BACKWARD):
                await ask.entry_page(account, EntryFilter(), page, newest_first=True)
                await ask.entry_page(account, EntryFilter(smallest=1), page, newest_first=False)
            await ask.highest_sequence(account)

    after = await reads(crowd.database)
    assert whole_tables_read(before, after) == {}
    assert rows_read(before, after) < 2_000


async def test_balances_of_a_hundred_accounts_take_a_probe_for_each_and_for_what_it_holds(
    crowd: Crowd,
) -> None:
    ids = crowd.ids[:100]
    before = await reads(crowd.database)
    async with running_ledger(crowd.database.runtime_url) as books:
        assert len(await books.reader.balances(ids)) == 100
    after = await reads(crowd.database)

    assert whole_tables_read(before, after) == {}
    assert rows_read(before, after) < 1_000


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    "narrower", [{}, {"types": ("posting",)}, {"types": ("posting",), "direction": Direction.DEBIT}]
)
async def test_a_page_that_is_filtered_stops_when_it_is_full(
    crowd: Crowd, narrower: dict[str, Any], *, newest_first: bool
) -> None:
    """Every entry passes the filter, so that a page of twenty needs to look at twenty-one and not at ten thousand."""
    first, *_ = await crowd.books.reader.entries_after(crowd.bank, 0, 1)
    wanted = replace(EntryFilter(posted_from=first.posted_at, smallest=1, largest=99), **narrower)
    before = await reads(crowd.database)
    async with running_ledger(crowd.database.runtime_url) as books:
        page = await books.reader.entry_page(
            crowd.bank, wanted, PageRequest(20), newest_first=newest_first
        )
    after = await reads(crowd.database)

    assert len(page.items) == 20
    assert whole_tables_read(before, after) == {}
    assert rows_read(before, after) < 500


@pytest.mark.parametrize("page", [FORWARD_BY_ID, BACKWARD_BY_ID], ids=["forward", "backward"])
async def test_few_withdrawals_are_found_among_many_holds(
    crowd: Crowd, page: PageRequest[UUID]
) -> None:
    account = await crowd.books.open(owner="guest")
    await crowd.books.deposit(account, HOLDS)
    guest = wallet_user("guest")
    holds = [PlaceHoldCommand(new_key(), account.id, vnd(1)) for _ in range(100)]
    await asyncio.gather(*(crowd.books.ledger.place_hold(guest, command) for command in holds))
    command = WithdrawCommand(new_key(), account.id, vnd(1))
    withdrawn = await crowd.books.ledger.withdraw(guest, command)
    assert isinstance(withdrawn, HoldPosted)
    before = await reads(crowd.database)

    async with running_ledger(crowd.database.runtime_url) as books:
        for status in (None, HoldStatus.OPEN):
            wanted = HoldFilter(HoldPurpose.WITHDRAWAL, status)
            own = await books.reader.holds_of_account(account, wanted, page)
            assert own.items == (withdrawn.hold,)
            assert withdrawn.hold in (await books.reader.holds_page(OPERATOR, wanted, page)).items
        closed = HoldFilter(HoldPurpose.HOLD, HoldStatus.VOIDED)
        assert (await books.reader.holds_page(OPERATOR, closed, page)).items == ()

    after = await reads(crowd.database)
    assert whole_tables_read(before, after) == {}
    assert rows_read(before, after) < 20


# ---------------------------------------------------------------- what was read


@asynccontextmanager
async def counted_round_trips(connections: DriverConnections) -> AsyncGenerator[list[str]]:
    """Note what the one connection that has been used so far is asked."""
    (connection,) = connections._idle
    asked: list[str] = []

    def note(query: Any) -> None:
        asked.append(query.query)

    connection.add_query_logger(note)
    yield asked
    connection.remove_query_logger(note)


async def reads(database: TestDatabase) -> dict[str, dict[str, int]]:
    """Ask how often tables were read from end to end, and how many rows and blocks were touched."""
    async with connect(database.superuser_url) as connection:
        rows = await connection.fetch(
            """
            select
              t.relname, t.seq_scan, t.seq_tup_read + coalesce(t.idx_tup_fetch, 0) as rows_read,
              io.heap_blks_hit + io.heap_blks_read + io.idx_blks_hit + io.idx_blks_read as blocks
            from pg_stat_user_tables as t join pg_statio_user_tables as io using (relid)
            where t.relname = any($1)
            """,
            list(GROWING),
        )
    return {row["relname"]: dict(row) for row in rows}


def whole_tables_read(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """Count, for each table that was read from end to end, how often it was."""
    scans = {table: row["seq_scan"] - before[table]["seq_scan"] for table, row in after.items()}
    return {table: count for table, count in scans.items() if count}


def rows_read(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    return sum(after[table]["rows_read"] - before[table]["rows_read"] for table in GROWING)


def blocks_touched(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    return sum(after[table]["blocks"] - before[table]["blocks"] for table in GROWING)


async def measured(
    crowd: Crowd, *groups: tuple[PostingRequest, ...]
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Post on an engine of its own, and return what was read before and after; foreign keys and triggers included."""
    before = await reads(crowd.database)
    async with running_ledger(crowd.database.runtime_url, ONE_AT_A_TIME) as books:
        outcomes = await asyncio.gather(*(books.engine.post(group) for group in groups))
    for group in outcomes:
        assert all(isinstance(outcome, Posted) for outcome in group)
    return before, await reads(crowd.database)


async def test_postings_with_their_checks_read_no_table_from_end_to_end(crowd: Crowd) -> None:
    """The plans of triggers and foreign keys are not in EXPLAIN, so the server's own counters tell."""
    groups = [(crowd.request(2),) for _ in range(20)]
    before, after = await measured(crowd, *groups)

    assert whole_tables_read(before, after) == {}


@pytest.mark.timeout(120)
async def test_p12_the_cost_of_a_transaction_grows_with_its_legs_and_not_with_their_square(
    crowd: Crowd,
) -> None:
    blocks: dict[int, float] = {}
    rows: dict[int, float] = {}
    for legs in (10, 1_000, 10_000):
        before, after = await measured(crowd, (crowd.request(legs),))
        blocks[legs] = blocks_touched(before, after) / legs
        rows[legs] = rows_read(before, after) / legs
        assert whole_tables_read(before, after) == {}
    assert blocks[1_000] < 2 * blocks[10]
    assert blocks[10_000] < 2 * blocks[1_000]
    assert rows[10_000] < 2 * rows[1_000]


@pytest.mark.parametrize("size", [1, 200])
async def test_a_batch_takes_as_many_round_trips_whatever_its_size(crowd: Crowd, size: int) -> None:
    async with running_ledger(crowd.database.runtime_url, ONE_AT_A_TIME) as books:
        await books.engine.post((crowd.request(2),))
        async with counted_round_trips(books.postings) as asked:
            requests = [crowd.request(2) for _ in range(size)]
            await asyncio.gather(*(books.engine.post((one,)) for one in requests))
        assert len(asked) == 5, "begin, lock, known keys, write, commit"

        # The same again, all replays: nothing is left to write.
        async with counted_round_trips(books.postings) as asked:
            await asyncio.gather(*(books.engine.post((one,)) for one in requests))
        assert len(asked) == 4


async def test_a_list_is_counted_up_to_the_bound_and_no_further(crowd: Crowd) -> None:
    """The real bound: the bank has ten thousand entries and the crowd as many accounts."""
    ask = crowd.books.reader
    total = (await ask.balances([crowd.bank.id]))[crowd.bank.id].sequence
    assert total == CROWD
    assert await ask.count_entries(crowd.bank, EntryFilter(smallest=1)) == CROWD
    assert await ask.count_own_accounts(wallet_user("crowd"), AccountFilter()) == CROWD
    someone = await crowd.books.open(owner="crowd")
    await crowd.books.deposit(someone, 1, crowd.bank)
    assert await ask.count_entries(crowd.bank, EntryFilter(smallest=1)) is None
    assert await ask.count_entries(crowd.bank, EntryFilter()) == CROWD + 1
    assert await ask.count_own_accounts(wallet_user("crowd"), AccountFilter()) is None

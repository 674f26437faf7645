"""The books that are measured: a database of wallets and hot accounts, and the proof that they are sound in the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg

from app.embedded import RUNTIME, SUPERUSER, RunningPostgres
from app.ledger.accounts import OpenAccountCommand
from app.ledger.administration import Opened
from app.ledger.children import held_child_id
from app.ledger.model import BalanceTracking
from bench.posting.driver import running_ledger
from bench.posting.plan import Plan
from bench.posting.workloads import CALLER, CURRENCY, wallet_id

# The promises of the books are written down once, as the queries that the tests ask as well.
from tests.support.findings import ALL as FINDINGS

SQL: Final = Path(__file__).parent.parent / "sql"
DATABASE: Final = "bench"
STRIPES: Final = 16

HOT_WALLET: Final = 1
"""The number of the wallet that takes every credit where an ordinary account does."""


@dataclass(frozen=True, slots=True)
class HotAccounts:
    """The accounts that take every credit, one of each tracking; none is owned by who pays into it."""

    tracked: UUID
    striped: UUID
    derived: UUID


async def prepare(server: RunningPostgres, plan: Plan) -> HotAccounts:
    """Put accounts into the migrated database, those of the peers included."""
    connection = await asyncpg.connect(server.url(DATABASE, SUPERUSER))
    try:
        await connection.execute((SQL / "stored_function.sql").read_text(encoding="utf-8"))
        await connection.execute((SQL / "seed_schema.sql").read_text(encoding="utf-8"))
        await connection.execute(
            f"grant usage on schema textbook to {RUNTIME}; "
            f"grant all on all tables in schema textbook to {RUNTIME}; "
            f"grant all on all sequences in schema textbook to {RUNTIME}"
        )
        await _open_wallets(connection, plan)
        hot_accounts = HotAccounts(
            tracked=wallet_id(HOT_WALLET),
            striped=await _open_hot_account(server, BalanceTracking.STRIPED),
            derived=await _open_hot_account(server, BalanceTracking.DERIVED),
        )
        await connection.execute("vacuum analyze account")
        await connection.execute("vacuum analyze textbook.account")
        await connection.execute("checkpoint")
    finally:
        await connection.close()
    return hot_accounts


async def prove_sound(server: RunningPostgres) -> None:
    """Fail unless everything that was measured is a sound ledger: zero sums, chains, balances, hot accounts, holds."""
    connection = await asyncpg.connect(server.url(DATABASE, SUPERUSER))
    try:
        await connection.execute("set work_mem = '256MB'")
        print("proving that the books are sound", flush=True)
        for promise, query in FINDINGS.items():
            culprits = await connection.fetch(query)
            if culprits:
                raise AssertionError(f"{promise}: {[tuple(each) for each in culprits[:5]]}")
        booked = await connection.fetchval("select count(*) from journal")
        print(f"{booked:,} transactions kept {len(FINDINGS)} promises", flush=True)
    finally:
        await connection.close()


async def _open_wallets(connection: "asyncpg.Connection[asyncpg.Record]", plan: Plan) -> None:
    """Open the wallets by SQL, each with the child that holds what it sets aside, as after its first hold.

    Wallets may fall below zero here, so that no movement is refused and each does all of its work.
    """
    wallets = [wallet_id(number) for number in range(1, plan.wallets + 1)]
    await connection.execute(
        "insert into account (id, owner, kind, currency, allow_negative)"
        " select unnest($1::uuid[]), $2, 'LIABILITY', $3, true",
        wallets,
        CALLER.subject,
        CURRENCY,
    )
    await connection.execute(
        "insert into account (id, parent_id, purpose, kind, currency)"
        " select child, parent, 'HELD', 'LIABILITY', $3 from unnest($1::uuid[], $2::uuid[]) as c (child, parent)",
        [held_child_id(each) for each in wallets],
        wallets,
        CURRENCY,
    )
    await connection.execute(
        "insert into textbook.account (id, owner_id, currency, allow_negative)"
        " select n, n, $2, true from generate_series(1, $1::bigint) n",
        plan.wallets,
        CURRENCY,
    )


async def _open_hot_account(server: RunningPostgres, tracking: BalanceTracking) -> UUID:
    command = OpenAccountCommand(
        key=f"open {tracking}",
        currency=CURRENCY,
        owner=None,
        allow_negative=tracking is BalanceTracking.DERIVED,
        tracking=tracking,
        stripes=STRIPES if tracking is BalanceTracking.STRIPED else None,
    )
    async with running_ledger(server.url(DATABASE, RUNTIME)) as ledger:
        opened = await ledger.open_account(CALLER, command)
    assert isinstance(opened, Opened), opened
    return opened.account.id

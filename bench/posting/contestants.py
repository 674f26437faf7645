"""Who is measured: our movements, each kind by itself, and the peers."""

from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from app.embedded import RUNTIME, RunningPostgres
from bench.posting.books import DATABASE, HOT_WALLET, STRIPES, HotAccounts
from bench.posting.driver import Assignment, drive
from bench.posting.peers import Script, run_script
from bench.posting.plan import Contestant, Plan
from bench.posting.workloads import SPLIT_CREDITS, Workload

IN_FLIGHT: Final = 256

TRANSFER: Final = "transfer, random pairs"
"""The name of the contestant that the cost of all others is compared with."""

STORED_FUNCTIONS: Final = tuple(
    f"stored function, random pairs, {clients} clients" for clients in (8, 32)
)
"""The names of the peers that do the same work; the faster one is what rates are compared with."""


def list_contestants(
    server: RunningPostgres, plan: Plan, hot_accounts: HotAccounts
) -> Sequence[Contestant]:
    """List all, in the order in which they take turns."""
    return (*_ours(server, plan, hot_accounts), *_peers(server, plan))


def _ours(server: RunningPostgres, plan: Plan, hot_accounts: HotAccounts) -> Sequence[Contestant]:
    url = server.url(DATABASE, RUNTIME)

    def assign(workload: Workload, receiver: UUID | None = None) -> Assignment:
        return Assignment(workload, plan.wallets, IN_FLIGHT, plan.seconds, receiver)

    def credit(receiver: UUID, *, processes: int) -> partial[float]:
        return partial(drive, url, assign(Workload.CREDITS, receiver), processes=processes)

    return (
        Contestant(TRANSFER, partial(drive, url, assign(Workload.TRANSFERS), processes=1)),
        Contestant(
            f"split, one debit and {SPLIT_CREDITS} credits, random wallets",
            partial(drive, url, assign(Workload.SPLITS), processes=1),
            # A transfer is one debit and one credit, and this has so many credits.
            leg_pairs=SPLIT_CREDITS,
            bounded=True,
        ),
        Contestant(
            "hold placed, hold captured, random pairs",
            partial(drive, url, assign(Workload.HOLDS), processes=1),
            bounded=True,
        ),
        Contestant(
            "transfer, one account takes every credit", credit(hot_accounts.tracked, processes=1)
        ),
        Contestant(
            "the same from 2 processes: a TRACKED account",
            credit(hot_accounts.tracked, processes=2),
        ),
        Contestant(
            f"the same from 2 processes: a STRIPED account ({STRIPES} stripes)",
            credit(hot_accounts.striped, processes=2),
            bounded=True,
        ),
        Contestant(
            "the same from 2 processes: a DERIVED account",
            credit(hot_accounts.derived, processes=2),
            bounded=True,
        ),
    )


def _peers(server: RunningPostgres, plan: Plan) -> Sequence[Contestant]:
    few, many = STORED_FUNCTIONS
    scripts = {
        few: Script("stored_function.pgbench", 8, {"hot": 0}),
        many: Script("stored_function.pgbench", 32, {"hot": 0}),
        "stored function, one account takes every credit": Script(
            "stored_function.pgbench", 8, {"hot": HOT_WALLET}
        ),
        "textbook statements, random pairs, 8 clients": Script("textbook.pgbench", 8),
    }
    return [
        Contestant(name, partial(run_script, server, plan, script))
        for name, script in scripts.items()
    ]

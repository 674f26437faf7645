"""The command: prepare the books, let every contestant run in every round, prove the books, report."""

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from app.embedded import OWNER, EmbeddedPostgres
from app.migrate import upgrade
from bench.posting.books import DATABASE, prepare, prove_sound
from bench.posting.contestants import list_contestants
from bench.posting.plan import Plan
from bench.posting.report import print_report


def main(
    wallets: Annotated[
        int, typer.Option("--wallets", "-w", help="How many wallets there are.", min=10)
    ] = 100_000,
    seconds: Annotated[
        int,
        typer.Option("--seconds", "-s", help="How long each contestant runs in each round.", min=1),
    ] = 15,
    rounds: Annotated[
        int, typer.Option("--rounds", "-r", help="How often each contestant runs.", min=1)
    ] = 3,
) -> None:
    """Measure the posting engine beside its peers and print a table; `-s 3 -r 2` takes about two minutes."""
    plan = Plan(wallets, seconds, rounds)
    with (
        tempfile.TemporaryDirectory(prefix="saldo-bench-") as directory,
        EmbeddedPostgres(Path(directory)) as server,
    ):
        server.create_database(DATABASE)
        upgrade(server.url(DATABASE, OWNER))
        hot_accounts = asyncio.run(prepare(server, plan))
        contestants = list_contestants(server, plan, hot_accounts)
        rates: dict[str, list[float]] = {each.name: [] for each in contestants}
        for number in range(plan.rounds):
            for each in contestants:
                rate = each.measure()
                rates[each.name].append(rate)
                print(f"round {number + 1}: {each.name}: {rate:,.0f}/s", flush=True)
        asyncio.run(prove_sound(server))
    print_report(plan, contestants, rates)


if __name__ == "__main__":
    typer.run(main)

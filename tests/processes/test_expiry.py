"""Holds whose time is over are released once, however many processes do it at once and however many of them are killed."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.ledger.answers import HoldPosted
from app.ledger.movements.holds import PlaceHoldCommand
from tests.processes.running import ANSWER_SECONDS, RunningServer, environment, run_saldo
from tests.processes.waiting import until
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import OPERATOR, contents, new_key, running_ledger, vnd
from tests.support.postgres import TestDatabase, connect, scalar

WALLETS = 20
HOLDS = 600
FUNDS = 1_000

FAR_AWAY = datetime(2100, 1, 1, tzinfo=UTC)

OPEN_HOLDS = "select count(*) from hold where status = 'OPEN'"
WAITING = """
select count(*) >= {} from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name = 'saldo post'
"""
RELEASES = """
select array_agg(distinct releases) from (
  select count(j.id) as releases
  from hold as h left join journal as j on j.hold_id = h.id and j.type = 'release'
  where h.expires_at < now() group by h.id
) as counted
"""
EXPIRED = "saldo_holds_expired_total"
LAST_SUCCESS = "saldo_housekeeping_last_success_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class Overdue:
    """Wallets whose money is all on hold, for longer than it was asked for."""

    path: Path
    database: TestDatabase

    @property
    def variables(self) -> dict[str, str]:
        return {"SALDO_DATABASE_URL": self.database.runtime_url}

    def expire(self) -> "subprocess.Popen[str]":
        """Start `saldo expire-holds`."""
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", "expire-holds"],
            env=environment(self.path, **self.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def ask(self, query: str) -> Any:
        return await scalar(self.database.superuser_url, query)

    async def wait_for(self, query: str, value: object) -> None:
        async def is_so() -> bool:
            return await self.ask(query) == value

        await until(is_so, f"{query} answers {value}")

    @asynccontextmanager
    async def stalled(self, owner: str) -> AsyncGenerator[None]:
        """Keep whoever wants to move the money of a wallet waiting for as long as the block lasts."""
        async with (
            connect(self.database.superuser_url) as connection,
            connection.transaction(),
        ):
            await connection.execute(
                "select from account where owner = $1 and purpose = 'MAIN' for update", owner
            )
            yield

    async def check(self, holds: int) -> None:
        """Compare with what must have become of the holds: each was released once, and everybody has their money."""
        assert await self.ask(OPEN_HOLDS) == 0
        assert await self.ask("select count(*) from hold where status = 'EXPIRED'") == holds
        assert await self.ask(RELEASES) == [1]
        assert await self.ask("select sum(balance) from account where purpose = 'HELD'") == 0
        async with connect(self.database.superuser_url) as connection:
            rows = await connection.fetch(
                """
                select distinct a.balance + coalesce((select sum(s.balance) from account s where s.parent_id = a.id), 0)
                from account a where a.owner is not null and a.purpose = 'MAIN'
                """
            )
        assert [row[0] for row in rows] == [FUNDS]
        await assert_books_are_right(self.database.superuser_url)


async def _place_holds(database: TestDatabase, wallets: int, holds: int) -> None:
    async with running_ledger(database.runtime_url) as books:
        accounts = [(await books.wallet(f"owner-{n}", FUNDS)).account for n in range(wallets)]
        answers = await asyncio.gather(
            *(
                books.ledger.place_hold(
                    OPERATOR,
                    PlaceHoldCommand(
                        new_key(),
                        accounts[number % wallets].id,
                        vnd(1 + number % 3),
                        expires_at=FAR_AWAY,
                    ),
                )
                for number in range(holds)
            )
        )
        assert all(isinstance(answer, HoldPosted) for answer in answers)
    # Nobody waits until then: the superuser may change what the server can't.
    async with connect(database.superuser_url) as connection:
        await connection.execute("update hold set expires_at = now() - interval '1 minute'")


@pytest.fixture
async def overdue(tmp_path: Path, database_url: TestDatabase) -> Overdue:
    await _place_holds(database_url, WALLETS, HOLDS)
    return Overdue(tmp_path, database_url)


@pytest.mark.timeout(180)
async def test_o05_due_holds_expire_once_whoever_is_killed_and_however_many_run_at_once(
    overdue: Overdue,
) -> None:
    for number in range(5):
        async with overdue.stalled(f"owner-{number}"):
            with overdue.expire() as killed:
                await overdue.wait_for(WAITING.format(1), True)
                killed.kill()
        assert killed.returncode < 0
    assert await overdue.ask(OPEN_HOLDS) > 0

    async with overdue.stalled("owner-7"):
        killed, finishing = overdue.expire(), overdue.expire()
        await overdue.wait_for(WAITING.format(2), True)
        killed.kill()
    with killed, finishing:
        said, complaint = await asyncio.to_thread(finishing.communicate, timeout=ANSWER_SECONDS)

    assert finishing.returncode == 0, complaint
    assert said.startswith("Holds expired: ")
    await overdue.check(HOLDS)


async def test_o05_two_runs_at_once_expire_each_hold_once_and_a_third_finds_nothing(
    overdue: Overdue,
) -> None:
    with overdue.expire() as first, overdue.expire() as second:
        answers = [
            await asyncio.to_thread(each.communicate, timeout=ANSWER_SECONDS)
            for each in (first, second)
        ]

    assert (first.returncode, second.returncode) == (0, 0), answers
    assert sum(int(said.removeprefix("Holds expired: ")[:-2]) for said, _ in answers) == HOLDS
    await overdue.check(HOLDS)
    before = await contents(overdue.database.superuser_url)

    third = run_saldo(overdue.path, "expire-holds", **overdue.variables)

    assert (third.returncode, third.stdout) == (0, "Holds expired: 0.\n")
    assert await contents(overdue.database.superuser_url) == before


async def test_o05_servers_let_holds_expire_by_themselves_each_once(overdue: Overdue) -> None:
    variables = {
        **overdue.variables,
        "SALDO_HOLD_EXPIRY_SECONDS": "0.1",
        "SALDO_SWEEP_SECONDS": "0.1",
        "SALDO_SNAPSHOT_SECONDS": "0.1",
    }
    with (
        RunningServer(overdue.path / "data", **variables) as first,
        RunningServer(overdue.path / "data", **variables) as second,
    ):
        servers = (first, second)
        await overdue.wait_for(OPEN_HOLDS, 0)

        async def all_jobs_have_run() -> bool:
            jobs = ("expire_holds", "sweep_hot_accounts", "take_snapshots")
            return all(samples(each, LAST_SUCCESS, "job").keys() == set(jobs) for each in servers)

        await until(all_jobs_have_run, "every job has succeeded on both servers")
        assert sum(samples(each, EXPIRED)[""] for each in servers) == HOLDS
        for each in servers:
            assert await each.stop_beside() == 0

    await overdue.check(HOLDS)


def samples(server: RunningServer, name: str, label: str = "") -> dict[str, float]:
    """Read a metric of a server, by the value of a label."""
    text = httpx.get(f"{server.url}/metrics", trust_env=False).text
    return {
        sample.labels.get(label, ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }

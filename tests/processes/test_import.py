"""`saldo import` as a process: refused as a whole, killed and gone on with, and the same books at the end in every case."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.processes.running import ANSWER_SECONDS, environment, run_saldo
from tests.processes.waiting import until
from tests.support.invariants import assert_books_are_right
from tests.support.ledger import contents
from tests.support.postgres import TestDatabase, scalar

HEADER = "code,owner,kind,currency,amount"
ROWS = 10_000
COUNT_OPENINGS = "select count(*) from journal where type = 'opening'"
BALANCES = """
select coalesce(string_agg(code || ' ' || balance, ', ' order by code), '') from account where code like 'system:%'
"""


class Folder:
    """A folder with files to import into one database."""

    def __init__(self, path: Path, database: TestDatabase) -> None:
        self.path = path
        self.database = database

    @property
    def variables(self) -> dict[str, str]:
        return {"SALDO_DATABASE_URL": self.database.runtime_url}

    def write(self, rows: Iterable[str], *, start: str = "", end: str = "\n") -> Path:
        file = self.path / "opening.csv"
        text = start + end.join([HEADER, *rows]) + end
        file.write_bytes(text.encode())
        return file

    def run(self, file: Path, *options: str) -> "subprocess.CompletedProcess[str]":
        return run_saldo(self.path, "import", str(file), *options, **self.variables)

    def start(self, file: Path, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "app.cli", "import", str(file)],
            env=environment(self.path, **self.variables),
            text=True,
            **options,
        )

    async def ask(self, query: str) -> Any:
        return await scalar(self.database.superuser_url, query)

    async def contents(self) -> Any:
        return await contents(self.database.superuser_url)


@pytest.fixture
def folder(tmp_path: Path, database_url: TestDatabase) -> Folder:
    return Folder(tmp_path, database_url)


def wallets(count: int) -> list[str]:
    """Make rows of which each begins with a centavo more than the one before it, so that no row can stand for another."""
    return [
        f"wallet:{number},owner-{number},LIABILITY,BRL,{number // 100}.{number % 100:02}"
        for number in range(count)
    ]


@pytest.mark.timeout(180)
async def test_o04_ten_thousand_accounts_are_booked_once_however_often_the_import_is_killed(
    folder: Folder,
) -> None:
    file = folder.write(wallets(ROWS), start="\ufeff", end="\r\n")
    booked = 0
    for _ in range(2):
        with folder.start(file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as importing:
            enough = booked + ROWS // 4

            async def far_enough(enough: int = enough) -> bool:
                return await folder.ask(COUNT_OPENINGS) >= enough

            await until(far_enough, "a part is booked")
            importing.kill()
        assert importing.returncode == -signal.SIGKILL
        booked = await folder.ask(COUNT_OPENINGS)
        assert enough <= booked < ROWS - 1

    finished = folder.run(file)

    assert finished.returncode == 0, finished.stderr
    assert await folder.ask(COUNT_OPENINGS) == ROWS - 1, "the first wallet begins with nothing"
    total = sum(range(ROWS))
    assert await folder.ask("select sum(balance) from account where owner is not null") == total
    assert await folder.ask("select count(*) from account") == ROWS + 1
    assert await folder.ask(BALANCES) == f"system:opening:BRL -{total}"
    amount = f"{total // 100}.{total % 100:02}"
    assert finished.stdout.splitlines()[1].split() == ["BRL", "credit", amount, amount]
    before = await folder.contents()

    again = folder.run(file)

    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[2] == (
        f"Rows: {ROWS}; accounts opened: 0; opening balances booked: 0; there already: {ROWS}; differing: 0."
    )
    assert await folder.contents() == before
    await assert_books_are_right(folder.database.superuser_url)


async def test_o04_one_bad_row_among_ten_thousand_is_named_and_nothing_is_booked(
    folder: Folder,
) -> None:
    rows = wallets(ROWS)
    rows[7_777] = "wallet:x,,LIABILITY,JPY,1.00"
    before = await folder.contents()

    refused = folder.run(folder.write(rows))

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        "saldo: opening.csv, line 7779: the amount must have no digits behind the point, as JPY has; it has 2; it is '1.00'",
        "saldo: Nothing was booked.",
    ]
    assert await folder.contents() == before


async def test_o04_all_that_is_wrong_with_a_file_is_said_at_once(folder: Folder) -> None:
    known = folder.run(folder.write(["known,alice,LIABILITY,BRL,1.00"]))
    assert known.returncode == 0, known.stderr
    before = await folder.contents()

    refused = folder.run(
        folder.write(
            [
                "known,bob,LIABILITY,BRL,1.00",
                "twice,,LIABILITY,BRL,1.00",
                "twice,,LIABILITY,BRL,1.00",
                "a,,LIABILITY,BTC,1.00",
                "b,,LIABILITY,JPY,1.0",
                "c,,LIABILITY,BRL,-1.00",
                "system:fees,,REVENUE,BRL,1.00",
                "d,,SAVINGS,BRL,1.00",
                "e,,ASSET,BRL,92233720368547758.07",
                "f,,ASSET,BRL,0.01",
                "g,,LIABILITY,BRL",
            ]
        )
    )

    assert refused.returncode == 1
    places = [line.partition(":")[2].partition(": ")[0] for line in refused.stderr.splitlines()]
    wrong = [2, 4, 5, 6, 7, 8, 9, 12]
    assert places[:-2] == [f" opening.csv, line {line}" for line in wrong]
    assert "saldo: opening.csv: the total in BRL must be at most" in refused.stderr
    assert refused.stderr.endswith("saldo: Nothing was booked.\n")
    assert await folder.contents() == before


async def test_o04_a_dry_run_says_what_would_be_done_and_writes_nothing(folder: Folder) -> None:
    file = folder.write([*wallets(3), "bank,,ASSET,JPY,700"])
    before = await folder.contents()

    dry = folder.run(file, "--dry-run")

    assert dry.returncode == 0, dry.stderr
    assert [line.split() for line in dry.stdout.splitlines()[1:3]] == [
        ["BRL", "credit", "0.03", "0.00"],
        ["JPY", "debit", "700", "0"],
    ]
    assert dry.stdout.splitlines()[3:] == [
        "Rows: 4; accounts to open: 4; opening balances to book: 3; there already: 0; differing: 0.",
        "Dry run: nothing was booked.",
    ]
    assert await folder.contents() == before


async def test_o04_an_edited_file_differs_and_books_nothing_twice(folder: Folder) -> None:
    assert folder.run(folder.write(wallets(3))).returncode == 0
    edited = folder.write([*wallets(2), "wallet:2,owner-2,LIABILITY,BRL,9.99"])
    before = await folder.contents()

    for options in ((), ("--dry-run",)):
        differs = folder.run(edited, *options)

        assert differs.returncode == 1
        assert differs.stdout.splitlines()[1].split() == ["BRL", "credit", "10.00", "0.03"]
        assert "there already: 2; differing: 1." in differs.stdout
        assert differs.stderr == (
            "saldo: opening.csv, line 4: the account wallet:2 has its opening balance already, 0.02 BRL; "
            "the file gives it 9.99 BRL\n"
            "saldo: The ledger differs from the file.\n"
        )
        assert await folder.contents() == before


async def test_an_import_that_is_asked_to_stop_says_that_it_can_be_gone_on_with(
    folder: Folder,
) -> None:
    file = folder.write(wallets(ROWS))
    with folder.start(file, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as importing:

        async def has_begun() -> bool:
            return await folder.ask(COUNT_OPENINGS) > 0

        await until(has_begun, "a part is booked")
        importing.send_signal(signal.SIGTERM)
        said, complaint = importing.communicate(timeout=ANSWER_SECONDS)

    assert importing.returncode == 1
    assert said == ""
    assert complaint == (
        "saldo: Stopped. What was booked stays; the same command goes on from there.\n"
    )
    assert 0 < await folder.ask(COUNT_OPENINGS) < ROWS - 1
    await assert_books_are_right(folder.database.superuser_url)


def test_a_person_sees_how_far_it_is(folder: Folder) -> None:
    file = folder.write(wallets(10))
    terminal, end = pty.openpty()
    with folder.start(file, stdout=subprocess.PIPE, stderr=end) as importing:
        os.close(end)
        shown = b"".join(_read_to_the_end(terminal))
        assert importing.wait(ANSWER_SECONDS) == 0
    os.close(terminal)

    assert "10/10" in shown.decode()


def _read_to_the_end(terminal: int) -> Sequence[bytes]:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            # What Linux says once nobody has the other end open.
            return parts
        if not part:
            return parts
        parts.append(part)


async def test_an_import_into_the_embedded_database_starts_and_stops_it(data_dir: Path) -> None:
    file = data_dir.parent / f"{data_dir.name}.csv"
    file.write_text(f"{HEADER}\nimported:1,,LIABILITY,BRL,1.00\n")
    try:
        imported = run_saldo(data_dir, "import", str(file))
    finally:
        file.unlink()

    assert imported.returncode == 0, imported.stderr
    assert "accounts opened: 1;" in imported.stdout

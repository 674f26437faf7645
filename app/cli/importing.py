"""`saldo import`: what is wrong with the file, or a progress bar and a report."""

import asyncio
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.cli.database import database_of, name_new_ledger, prepare_schema
from app.cli.errors import CommandError
from app.cli.signals import interrupt, on_stop_signal, run_until_stopped
from app.importing import Comparison, FaultyFileError, Import, Plan, Sheet, Tally, Total, read_sheet
from app.ledger.errors import LedgerIncidentError, LedgerUnavailableError
from app.ledger.money import Money
from app.logs import configure_logging
from app.main import running_books
from app.settings import Settings


def import_file(settings: Settings, file: Path, *, dry_run: bool) -> bool:
    """Book a file of opening balances, or say what that would do; tells whether the ledger has all that the file says.

    Raises CommandError, EmbeddedPostgresError and UnsupportedServerError.
    """
    on_stop_signal(interrupt)
    configure_logging(settings.log_level)
    try:
        sheet = _read(file)
        name_new_ledger(settings)
        with database_of(settings) as complete:
            prepare_schema(complete)
            return run_until_stopped(partial(_run, complete, sheet, file.name, dry_run=dry_run))
    except KeyboardInterrupt:
        raise CommandError("Stopped before anything was booked.") from None
    except FaultyFileError as error:
        raise _faulty(file.name, error) from error
    except LedgerUnavailableError as error:
        raise CommandError(
            "The database didn't answer in time. What was booked stays; the same command goes on from there."
        ) from error
    except LedgerIncidentError as error:
        raise CommandError(
            "The database refused what should have been bookable; the log above says what. "
            "What was booked stays, and the same command goes on from there."
        ) from error


def _read(file: Path) -> Sheet:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file} can't be read: {error.strerror}.") from error
    # A name may hold bytes that are no text; what stands in a transaction's metadata must be.
    sheet = read_sheet(file.name.encode(errors="replace").decode(), data)
    if not sheet.rows:
        raise _faulty(file.name, FaultyFileError(sheet.faults))
    return sheet


async def _run(
    settings: Settings, sheet: Sheet, name: str, stop: asyncio.Event, *, dry_run: bool
) -> bool:
    async with running_books(settings) as books:
        importing = Import(books.openings, sheet)
        plan = await importing.plan()
        if dry_run:
            comparison, differing = plan.before, plan.differing
        else:
            await _book(importing, plan, stop)
            comparison = await importing.review()
            differing = comparison.differences
    _report(comparison, plan.tally(differing), dry_run=dry_run)
    if differing:
        lines = [f"{name}, line {each.line}: {each.reason}" for each in differing]
        raise CommandError("\n".join([*lines, "The ledger differs from the file."]))
    return True


async def _book(importing: Import, plan: Plan, stop: asyncio.Event) -> None:
    console = Console(stderr=True)
    columns = (TextColumn("Booking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=len(plan.pending))
        complete = await importing.book(plan, stop, partial(progress.advance, bar))
    if not complete:
        raise CommandError("Stopped. What was booked stays; the same command goes on from there.")


def _report(comparison: Comparison, tally: Tally, *, dry_run: bool) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("Currency", "Side"):
        table.add_column(heading)
    for heading in ("In the file", "In the ledger"):
        table.add_column(heading, justify="right", no_wrap=True)
    for currency in sorted({*comparison.file, *comparison.ledger}):
        file = comparison.file.get(currency, Total())
        ledger = comparison.ledger.get(currency, Total())
        for side, asked, booked in (
            ("debit", file.debits, ledger.debits),
            ("credit", file.credits, ledger.credits),
        ):
            if asked or booked:
                amounts = (Money(each, currency).decimal for each in (asked, booked))
                table.add_row(currency, side, *amounts)
    Console(highlight=False).print(table)
    opened, booked = ("to open", "to book") if dry_run else ("opened", "booked")
    sys.stdout.write(
        f"Rows: {tally.rows}; accounts {opened}: {tally.opened}; opening balances {booked}: {tally.booked}; "
        f"there already: {tally.there}; differing: {tally.differing}.\n"
    )
    if dry_run:
        sys.stdout.write("Dry run: nothing was booked.\n")


def _faulty(name: str, error: FaultyFileError) -> CommandError:
    lines = [
        f"{name}: {fault.reason}"
        if fault.line is None
        else f"{name}, line {fault.line}: {fault.reason}"
        for fault in error.faults
    ]
    return CommandError("\n".join([*lines, "Nothing was booked."]))

"""The run of an import: ask the ledger, check, book, compare."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.importing.checks import check_beside_ledger, check_together, pending
from app.importing.comparison import Comparison, Difference, Standings, compare
from app.importing.sheet import Fault, Row, Sheet
from app.ledger.errors import Refusal
from app.ledger.openings import Openings, equity_code

ROWS_AT_ONCE: Final = 256
"""How many rows are handed to the ledger together: enough to fill a batch of the posting engine, and far below what its
queue takes."""


class FaultyFileError(Exception):
    """The file can't be booked as it is; `faults` are all that was found, in the order of their lines."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows of a file came to what."""

    rows: int
    opened: int
    """Accounts that were opened."""
    booked: int
    """Opening balances that were booked; an account that begins with nothing has none."""
    there: int
    """Rows that the ledger had already, as the file says."""
    differing: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What booking a file would do, as the ledger stands."""

    rows: int
    pending: tuple[Row, ...]
    """Rows that still have to be booked."""
    new: frozenset[int]
    """Lines of the rows whose accounts aren't there."""
    before: Comparison
    """The file beside the ledger as it is now."""
    differing: tuple[Difference, ...]
    """What will differ all the same: accounts that have another opening balance than the file gives them."""

    def tally(self, differing: Sequence[Difference]) -> Tally:
        """Count what is done once everything is booked but what differs."""
        failed = {each.line for each in differing}
        done = [row for row in self.pending if row.line not in failed]
        return Tally(
            rows=self.rows,
            opened=sum(row.line in self.new for row in done),
            booked=sum(row.balance.amount.minor_units > 0 for row in done),
            there=self.rows - len(self.pending) - len(self.differing),
            differing=len(differing),
        )


class Import:
    """One file on its way into the ledger: `plan`, then `book`, then `review`."""

    def __init__(self, openings: Openings, sheet: Sheet) -> None:
        """Take what books, and what was read."""
        self._openings = openings
        self._sheet = sheet
        self._refusals: dict[str, Refusal] = {}

    async def plan(self) -> Plan:
        """Check everything and say what is to be done; writes nothing.

        Raises FaultyFileError and LedgerUnavailableError.
        """
        rows = self._sheet.rows
        standings = await self._standings()
        faults = (
            *self._sheet.faults,
            *check_together(rows),
            *check_beside_ledger(rows, standings),
        )
        if faults:
            raise FaultyFileError(tuple(sorted(faults, key=_place)))
        to_do = pending(rows, standings)
        lines = {row.line for row in to_do}
        before = compare(rows, standings)
        return Plan(
            rows=len(rows),
            pending=to_do,
            new=frozenset(row.line for row in to_do if row.balance.code not in standings),
            before=before,
            differing=tuple(each for each in before.differences if each.line not in lines),
        )

    async def book(self, plan: Plan, stop: asyncio.Event, advance: Callable[[int], None]) -> bool:
        """Book what is pending, some hundred rows at a time; tells whether it got to the end before `stop` was set.

        `advance` is told how many more rows are done. Raises LedgerUnavailableError and LedgerIncidentError; another run
        then goes on from there.
        """
        for first in range(0, len(plan.pending), ROWS_AT_ONCE):
            if stop.is_set():
                return False
            rows = plan.pending[first : first + ROWS_AT_ONCE]
            self._refusals |= await self._openings.book([row.balance for row in rows])
            advance(len(rows))
        return True

    async def review(self) -> Comparison:
        """Read from the ledger what all accounts of the file began with, and compare. Raises LedgerUnavailableError."""
        return compare(self._sheet.rows, await self._standings(), self._refusals)

    async def _standings(self) -> Standings:
        codes = {row.balance.code: None for row in self._sheet.rows}
        equity = {equity_code(row.balance.amount.currency): None for row in self._sheet.rows}
        return await self._openings.standings([*codes, *equity])


def _place(fault: Fault) -> tuple[bool, int]:
    """Put what is wrong with a line in the order of lines, and what is wrong with the whole file behind it."""
    return (fault.line is None, fault.line or 0)

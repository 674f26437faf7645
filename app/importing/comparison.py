"""What a file says beside what the ledger has: row by row, and in totals for each currency."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from app.importing.sheet import Row
from app.ledger.errors import Refusal
from app.ledger.model import CREDIT_NORMAL, AccountKind
from app.ledger.money import Money
from app.ledger.openings import Standing, differing_facts

Standings: TypeAlias = Mapping[str, Standing]
"""The accounts that are there, by their codes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How the ledger differs from a row of the file."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Total:
    """Opening balances of one currency, summed for each normal side, in minor units; as large as they come to."""

    debits: int = 0
    """Of ASSET and EXPENSE."""
    credits: int = 0
    """Of LIABILITY, EQUITY and REVENUE."""

    def plus(self, kind: AccountKind, minor_units: int) -> "Total":
        """Add an amount, seen from the normal side of its account."""
        if kind in CREDIT_NORMAL:
            return Total(self.debits, self.credits + minor_units)
        return Total(self.debits + minor_units, self.credits)


_NO_REFUSALS: Final[Mapping[str, Refusal]] = {}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of a file beside the accounts that it names."""

    file: Mapping[str, Total]
    """By currency."""
    ledger: Mapping[str, Total]
    """What these accounts began with according to their entries; by currency."""
    differences: tuple[Difference, ...]


def compare(
    rows: Sequence[Row], standings: Standings, refusals: Mapping[str, Refusal] = _NO_REFUSALS
) -> Comparison:
    """Compare every row with its account; `refusals` say, by code, why some of them were not booked."""
    found = [standings[row.balance.code] for row in rows if row.balance.code in standings]
    ledger: defaultdict[str, Total] = defaultdict(Total)
    for standing in found:
        account = standing.account
        ledger[account.currency] = ledger[account.currency].plus(
            account.kind, standing.opened_with or 0
        )
    differences: list[Difference] = []
    for row in rows:
        code = row.balance.code
        reason = _difference(row, standings.get(code), refusals.get(code))
        if reason is not None:
            differences.append(Difference(row.line, reason))
    return Comparison(totals_of(rows), dict(ledger), tuple(differences))


def totals_of(rows: Iterable[Row]) -> dict[str, Total]:
    """Sum what the rows say, by currency."""
    totals: defaultdict[str, Total] = defaultdict(Total)
    for row in rows:
        balance = row.balance
        totals[balance.amount.currency] = totals[balance.amount.currency].plus(
            balance.kind, balance.amount.minor_units
        )
    return dict(totals)


def other_facts(row: Row, standing: Standing) -> str | None:
    """Say how an account that is there is otherwise than its row; None where it is just that account."""
    names = differing_facts(row.balance, standing.account)
    if not names:
        return None
    return f"the account {row.balance.code} is there already, with another {' and another '.join(names)}"


def _difference(row: Row, standing: Standing | None, refusal: Refusal | None) -> str | None:
    """Say how the ledger differs from a row; None where it has just what the row says."""
    code, amount = row.balance.code, row.balance.amount
    if standing is None:
        return f"the account {code} isn't there"
    other = other_facts(row, standing)
    if other is not None or (standing.opened_with or 0) == amount.minor_units:
        return other
    given = f"the file gives it {amount.decimal} {amount.currency}"
    if standing.opened_with is not None:
        booked = Money(standing.opened_with, amount.currency)
        return f"the account {code} has its opening balance already, {booked.decimal} {booked.currency}; {given}"
    why = "" if refusal is None else f", refused as {refusal.code.value}"
    return f"the account {code} has no opening balance; {given}{why}"

"""What can be wrong with rows that are right by themselves: beside each other, and beside what the ledger has already."""

from collections.abc import Iterable, Iterator, Sequence

from app.importing.comparison import Standings, other_facts, totals_of
from app.importing.sheet import Fault, Row
from app.ledger.model import AccountStatus
from app.ledger.money import INT64_MAX, Money, fits_int64
from app.ledger.openings import Standing, equity_code


def check_together(rows: Sequence[Row]) -> list[Fault]:
    """Find codes that stand in several rows, and currencies whose total no account could hold."""
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for row in rows:
        first = lines.setdefault(row.balance.code, row.line)
        if first != row.line:
            faults.append(
                Fault(row.line, f"the code {row.balance.code} stands in line {first} already")
            )
    for currency, total in totals_of(rows).items():
        if max(total.debits, total.credits) > INT64_MAX:
            largest = Money(INT64_MAX, currency).decimal
            faults.append(
                Fault(
                    None,
                    f"the total in {currency} must be at most {largest}, which is what 64 bits hold",
                )
            )
    return faults


def pending(rows: Iterable[Row], standings: Standings) -> tuple[Row, ...]:
    """Pick the rows that still have to be booked: accounts that aren't there, or that have no opening balance yet."""
    return tuple(row for row in rows if _is_pending(row, standings.get(row.balance.code)))


def check_beside_ledger(rows: Sequence[Row], standings: Standings) -> list[Fault]:
    """Find accounts that are there with other facts, and what could not be booked as things stand.

    `standings` holds the accounts that the rows name, and the equity accounts of their currencies where those are there.
    """
    faults = [
        Fault(row.line, reason)
        for row in rows
        for reason in _reasons(row, standings.get(row.balance.code))
    ]
    for currency, total in totals_of(pending(rows, standings)).items():
        code = equity_code(currency)
        equity = standings.get(code)
        if equity is not None and equity.account.status is not AccountStatus.ACTIVE:
            faults.append(Fault(None, f"the account {code} is {_status(equity)}"))
        # However the postings are ordered, the balance stays between these two.
        standing = 0 if equity is None else equity.balance
        if not fits_int64(standing - total.credits) or not fits_int64(standing + total.debits):
            faults.append(
                Fault(None, f"the account {code} couldn't hold the total in {currency} in 64 bits")
            )
    return faults


def _is_pending(row: Row, standing: Standing | None) -> bool:
    if standing is None:
        return True
    return standing.opened_with is None and row.balance.amount.minor_units > 0


def _reasons(row: Row, standing: Standing | None) -> Iterator[str]:
    """Say why a row can't be booked, where its account is there."""
    if standing is None:
        return
    other = other_facts(row, standing)
    if other is not None:
        yield other
    elif _is_pending(row, standing):
        account, amount = standing.account, row.balance.amount.minor_units
        if account.status is not AccountStatus.ACTIVE:
            yield f"the account {row.balance.code} is {_status(standing)}"
        if not fits_int64(account.from_normal_side(standing.balance) + amount):
            yield f"the account {row.balance.code} couldn't hold the amount beside what it has, in 64 bits"


def _status(standing: Standing) -> str:
    return standing.account.status.value.lower()

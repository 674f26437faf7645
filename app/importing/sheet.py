"""A file of opening balances as it is read: rows that are right by themselves, and what is wrong with the others.

The file is CSV in UTF-8, with or without a byte order mark, its lines ended by LF or CRLF. The first line names the columns,
in any order. Nothing is guessed or repaired: a row is taken as it stands or named with its line and a reason.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from app.ledger.accounts import RESERVED_PREFIX, OpenAccountCommand, refuse_opening
from app.ledger.errors import InvalidInput
from app.ledger.model import AccountKind, Caller, Json, Scope
from app.ledger.money import EXPONENTS, INT64_MAX, Money, MoneyFormatError
from app.ledger.openings import OpeningBalance

COLUMNS: Final = ("code", "owner", "kind", "currency", "amount")

_OPERATOR: Final = Caller("import", frozenset({Scope.OPERATE}))
"""In whose name an account is judged: whoever runs the command may open any account."""

_KINDS: Final = {kind.value: kind for kind in AccountKind}

_SHOWN_LIMIT: Final = 40
"""How many characters of a wrong field are shown."""

_PLAIN_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)

_Record: TypeAlias = Mapping[str, str]
"""The fields of one row by the names of their columns."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the file can't be booked as it is; `line` counts from 1, and is None where no single line is to blame."""

    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is right by itself."""

    line: int
    balance: OpeningBalance


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a file says."""

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]


def read_sheet(name: str, data: bytes) -> Sheet:
    """Read a file's content; `name` and a digest of the content go into the metadata of what is booked."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Sheet((), (Fault(line, "isn't text in UTF-8"),))
    records = _records(text)
    line, header = next(records, (1, list[str]()))
    reason = header if isinstance(header, str) else _refuse_header(header)
    if reason is not None:
        return Sheet((), (Fault(line, reason),))
    origin = {"file": name, "sha256": sha256(data).hexdigest()}
    rows: list[Row] = []
    faults: list[Fault] = []
    for line, fields in records:
        match _read_row(header, fields, {**origin, "line": line}):
            case OpeningBalance() as balance:
                rows.append(Row(line, balance))
            case reasons:
                faults += [Fault(line, reason) for reason in reasons]
    if not rows and not faults:
        faults.append(Fault(None, "has no rows"))
    return Sheet(tuple(rows), tuple(faults))


def _records(text: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each line's fields, or what is wrong with it as CSV; a field in quotes may run over several lines."""
    # With newline="" lines may end with LF, CRLF or CR, and those that end within quotes are kept as they are.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"isn't valid CSV: {error}"
        else:
            # An empty line, as at the end of many files.
            if fields:
                yield line, fields


def _refuse_header(header: Sequence[str]) -> str | None:
    if sorted(header) == sorted(COLUMNS):
        return None
    columns = ", ".join(COLUMNS)
    return f"must name the columns {columns}, separated by commas, each once and in any order"


def _read_row(
    header: Sequence[str], fields: Sequence[str] | str, metadata: Json
) -> OpeningBalance | list[str]:
    """Read a row, or say all that is wrong with it."""
    if isinstance(fields, str):
        return [fields]
    if len(fields) != len(header):
        return [f"has {len(fields)} fields instead of {len(header)}"]
    record = dict(zip(header, fields, strict=True))
    kind = _KINDS.get(record["kind"])
    amount = _read_amount(record)
    refused = _refuse_account(record)
    if refused is None and isinstance(kind, AccountKind) and isinstance(amount, Money):
        return OpeningBalance(record["code"], record["owner"] or None, kind, amount, metadata)
    reasons = [] if refused is None else [refused]
    if kind is None:
        reasons.append(
            f"the kind must be one of {', '.join(_KINDS)}; it is {_shown(record['kind'])}"
        )
    if isinstance(amount, str):
        reasons.append(f"the amount {amount}; it is {_shown(record['amount'])}")
    return reasons


def _refuse_account(record: _Record) -> str | None:
    """Judge code, owner and currency by the rules for every account, and by what is the platform's own."""
    if record["code"].casefold().startswith(RESERVED_PREFIX):
        return f"the code must not begin with {RESERVED_PREFIX}; it is {_shown(record['code'])}"
    refusal = refuse_opening(
        OpenAccountCommand(
            key="import",
            currency=record["currency"],
            owner=record["owner"] or None,
            code=record["code"],
        ),
        _OPERATOR,
    )
    match refusal:
        case None:
            return None
        case InvalidInput(path=(field, *_), rule=rule) if field in record:
            return f"the {field} {rule}; it is {_shown(record[field])}"
        case _:
            raise AssertionError(f"opening an account was refused for no field of a row: {refusal}")


def _read_amount(record: _Record) -> Money | str | None:
    """Read the amount or say what it must be; None where an unknown currency leaves that open."""
    text, currency = record["amount"], record["currency"]
    if text.startswith("-"):
        return "must not be negative"
    if _PLAIN_DECIMAL.fullmatch(text) is None:
        return "must be a plain decimal, without sign, grouping, exponent or leading zeros"
    if currency not in EXPONENTS:
        return None
    exponent, digits = EXPONENTS[currency], len(text.partition(".")[2])
    if digits != exponent:
        return f"must have {_digits(exponent)} behind the point, as {currency} has; it has {digits}"
    largest = Money(INT64_MAX, currency).decimal
    # More digits than that may be more than Python is willing to read as a number.
    if len(text) <= len(largest):
        with suppress(MoneyFormatError):
            return Money.parse(text, currency)
    return f"must be at most {largest}, which is what 64 bits hold"


def _digits(count: int) -> str:
    return f"{count or 'no'} digit{'' if count == 1 else 's'}"


def _shown(text: str) -> str:
    """Show a field's text within a sentence, in quotes, on one line and with nothing that a terminal would obey."""
    return repr(text if len(text) <= _SHOWN_LIMIT else f"{text[:_SHOWN_LIMIT]}…")

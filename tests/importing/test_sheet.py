"""A file is read as it stands, whatever program wrote it, and every row that can't be taken so is named with its reason."""

from hashlib import sha256

import pytest

from app.importing import COLUMNS, Fault, Row, read_sheet
from app.ledger.model import AccountKind
from app.ledger.money import Money
from app.ledger.openings import OpeningBalance

HEADER = "code,owner,kind,currency,amount"
ALICE = "wallet:alice,alice,LIABILITY,BRL,12.34"


def faults_of(*lines: str) -> list[Fault]:
    """Read rows below the usual header and return what is wrong with them; all the rows must be wrong."""
    sheet = read_sheet("opening.csv", "\n".join([HEADER, *lines]).encode())
    assert sheet.rows == ()
    return list(sheet.faults)


def reason_of(line: str) -> str:
    (fault,) = faults_of(line)
    assert fault.line == 2
    return fault.reason


def test_a_row_is_an_account_with_what_it_begins_with_and_where_that_stands() -> None:
    data = f"{HEADER}\n{ALICE}\nbank,,ASSET,JPY,700\n".encode()

    sheet = read_sheet("opening.csv", data)

    digest = sha256(data).hexdigest()
    assert sheet.faults == ()
    assert sheet.rows == tuple(
        Row(line, OpeningBalance(*facts, {"file": "opening.csv", "sha256": digest, "line": line}))
        for line, facts in (
            (2, ("wallet:alice", "alice", AccountKind.LIABILITY, Money(1234, "BRL"))),
            (3, ("bank", None, AccountKind.ASSET, Money(700, "JPY"))),
        )
    )


@pytest.mark.parametrize(
    "data",
    [
        f"{HEADER}\n{ALICE}\n".encode(),
        f"{HEADER}\n{ALICE}".encode(),
        f"\ufeff{HEADER}\n{ALICE}\n".encode(),
        f"{HEADER}\r\n{ALICE}\r\n".encode(),
        f"\ufeff{HEADER}\r\n{ALICE}\r\n\r\n".encode(),
        f"{HEADER}\n\n{ALICE}\n\n".encode(),
        b"amount,currency,kind,owner,code\n12.34,BRL,LIABILITY,alice,wallet:alice\n",
        b'code,owner,"kind",currency,amount\n"wallet:alice","alice",LIABILITY,"BRL","12.34"\n',
    ],
    ids=["lf", "no end", "bom", "crlf", "bom and crlf", "empty lines", "other order", "quotes"],
)
def test_o04_the_same_rows_are_read_whatever_program_wrote_them(data: bytes) -> None:
    sheet = read_sheet("opening.csv", data)

    assert sheet.faults == ()
    (row,) = sheet.rows
    balance = row.balance
    assert (balance.code, balance.owner, balance.kind) == (
        "wallet:alice",
        "alice",
        AccountKind.LIABILITY,
    )
    assert balance.amount == Money(1234, "BRL")


def test_a_line_is_the_one_that_an_editor_shows() -> None:
    sheet = read_sheet("opening.csv", f'{HEADER}\n\n"a\nb",,LIABILITY,BRL,1.00\n{ALICE}\n'.encode())

    # The code with a line break in it can't be one.
    assert [fault.line for fault in sheet.faults] == [3]
    assert [row.line for row in sheet.rows] == [5]


def test_names_in_any_script_are_kept_as_they_are() -> None:
    sheet = read_sheet("opening.csv", f"{HEADER}\n口座:1,josé 😀,LIABILITY,BRL,0.01\n".encode())

    (row,) = sheet.rows
    assert (row.balance.code, row.balance.owner) == ("口座:1", "josé 😀")


@pytest.mark.parametrize(
    ("amount", "currency", "minor_units"),
    [
        ("0.00", "BRL", 0),
        ("0.01", "BRL", 1),
        ("0", "JPY", 0),
        ("1500", "JPY", 1500),
        ("0.001", "KWD", 1),
        ("92233720368547758.07", "BRL", 2**63 - 1),
        ("9223372036854775807", "JPY", 2**63 - 1),
    ],
)
def test_an_amount_has_exactly_the_digits_of_its_currency(
    amount: str, currency: str, minor_units: int
) -> None:
    sheet = read_sheet("o.csv", f"{HEADER}\na,,LIABILITY,{currency},{amount}\n".encode())

    (row,) = sheet.rows
    assert row.balance.amount == Money(minor_units, currency)


@pytest.mark.parametrize(
    ("amount", "currency", "reason"),
    [
        ("-0.01", "BRL", "must not be negative"),
        ("-0.00", "BRL", "must not be negative"),
        ("12", "BRL", "must have 2 digits behind the point, as BRL has; it has 0"),
        ("12.3", "BRL", "must have 2 digits behind the point, as BRL has; it has 1"),
        ("12.345", "BRL", "must have 2 digits behind the point, as BRL has; it has 3"),
        ("12.00", "JPY", "must have no digits behind the point, as JPY has; it has 2"),
        ("1.23", "KWD", "must have 3 digits behind the point, as KWD has; it has 2"),
        ("92233720368547758.08", "BRL", "must be at most 92233720368547758.07"),
        ("9223372036854775808", "JPY", "must be at most 9223372036854775807"),
        ("9" * 5_000, "JPY", "must be at most 9223372036854775807"),
        *(
            (amount, "BRL", "must be a plain decimal")
            for amount in (
                *("", " ", "abc", "NaN", "Infinity", "1e2", "+1.00", " 1.00", "1.00 ", "1."),
                *(".50", "007.00", "1_000.00", "1 000.00", "1'000.00", "R$1.00", "٣.٤٥", "0x10"),
            )
        ),
    ],
)
def test_o04_an_amount_that_is_not_exact_is_refused(
    amount: str, currency: str, reason: str
) -> None:
    assert reason_of(f"a,,LIABILITY,{currency},{amount}").startswith(f"the amount {reason}")


@pytest.mark.parametrize("amount", ['"1,234.56"', '"1.234,56"', '"0,50"'])
def test_an_amount_of_another_language_is_refused_and_not_guessed(amount: str) -> None:
    assert "must be a plain decimal" in reason_of(f"a,,LIABILITY,BRL,{amount}")


@pytest.mark.parametrize("currency", ["BTC", "brl", "", " BRL", "XAU", "BRLX"])
def test_o04_an_unknown_currency_is_refused(currency: str) -> None:
    reason = reason_of(f"a,,LIABILITY,{currency},1.00")

    assert reason.startswith("the currency must be the upper-case ISO 4217 code")
    assert reason.endswith(f"it is {currency!r}")


@pytest.mark.parametrize("kind", ["", "liability", "WALLET", "LIABILITY "])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    assert reason_of(f"a,,{kind},BRL,1.00") == (
        "the kind must be one of ASSET, LIABILITY, EQUITY, REVENUE, EXPENSE; " + f"it is {kind!r}"
    )


@pytest.mark.parametrize("code", ["", " a", "a ", "a\tb", "a\x1b[2J", "a" * 129, "a\u200bb"])
def test_a_code_that_no_account_can_bear_is_refused(code: str) -> None:
    reason = reason_of(f"{code},,LIABILITY,BRL,1.00")

    assert reason.startswith("the code must ")
    assert reason.isprintable()


def test_an_owner_that_no_account_can_have_is_refused() -> None:
    assert reason_of(f"a,{'o' * 256},LIABILITY,BRL,1.00").startswith("the owner must ")


@pytest.mark.parametrize(
    "code", ["system:fees", "system:opening:BRL", "system:bank_clearing:BRL", "SYSTEM:x"]
)
def test_accounts_of_the_platform_are_not_for_files(code: str) -> None:
    assert reason_of(f"{code},,EQUITY,BRL,1.00") == (
        f"the code must not begin with system:; it is {code!r}"
    )


def test_all_that_is_wrong_with_a_row_is_said() -> None:
    reasons = [fault.reason for fault in faults_of("a,,CASH,BTC,-1")]

    assert [reason.split()[1] for reason in reasons] == ["currency", "kind", "amount"]


def test_o04_every_bad_row_is_named_at_once_and_the_good_ones_are_read() -> None:
    lines = [
        HEADER,
        ALICE,
        "b,,LIABILITY,BTC,1.00",
        "c,,LIABILITY,BRL,1.00",
        "d,LIABILITY",
        "e,,,,,",
    ]

    sheet = read_sheet("opening.csv", "\n".join(lines).encode())

    assert [fault.line for fault in sheet.faults] == [3, 5, 6]
    assert sheet.faults[1].reason == "has 2 fields instead of 5"
    assert sheet.faults[2].reason == "has 6 fields instead of 5"
    assert [row.line for row in sheet.rows] == [2, 4]


def test_a_broken_quote_is_named_and_the_rows_after_it_are_read() -> None:
    sheet = read_sheet("opening.csv", f'{HEADER}\n"a"b,,LIABILITY,BRL,1.00\n{ALICE}\n'.encode())

    (fault,) = sheet.faults
    assert fault.line == 2
    assert fault.reason.startswith("isn't valid CSV: ")
    assert [row.line for row in sheet.rows] == [3]


def test_a_quote_that_never_ends_is_named_where_it_begins() -> None:
    sheet = read_sheet("opening.csv", f'{HEADER}\n{ALICE}\n"a,,LIABILITY\n{ALICE}\n'.encode())

    assert [fault.line for fault in sheet.faults] == [3]
    assert [row.line for row in sheet.rows] == [2]


@pytest.mark.parametrize(
    "header",
    [
        "",
        ALICE,
        "code,owner,kind,currency",
        "code,owner,kind,currency,amount,note",
        "code,code,kind,currency,amount",
        "Code,Owner,Kind,Currency,Amount",
        "code;owner;kind;currency;amount",
        "code, owner, kind, currency, amount",
    ],
)
def test_without_its_header_nothing_of_a_file_is_read(header: str) -> None:
    sheet = read_sheet("opening.csv", f"{header}\n{ALICE}\n{ALICE}\n".encode())

    assert sheet.rows == ()
    (fault,) = sheet.faults
    assert ", ".join(COLUMNS) in fault.reason


def test_a_file_that_is_not_text_is_refused_with_the_line() -> None:
    data = f"{HEADER}\n{ALICE}\nmüller,,LIABILITY,BRL,1.00\n".encode("latin-1")

    assert read_sheet("opening.csv", data).faults == (Fault(3, "isn't text in UTF-8"),)
    assert read_sheet("opening.csv", "x".encode("utf-16")).faults == (
        Fault(1, "isn't text in UTF-8"),
    )


@pytest.mark.parametrize("data", [b"", f"{HEADER}\n".encode()])
def test_a_file_without_rows_is_a_mistake(data: bytes) -> None:
    sheet = read_sheet("opening.csv", data)

    assert sheet.rows == ()
    assert len(sheet.faults) == 1

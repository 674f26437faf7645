"""Rows that are right by themselves may be wrong beside each other, or beside what the ledger has."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.importing import Row
from app.importing.checks import check_beside_ledger, check_together, pending
from app.ledger.model import (
    Account,
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
)
from app.ledger.money import INT64_MAX, Money
from app.ledger.openings import OpeningBalance, Standing

WALLET = Account(
    id=UUID(int=1),
    parent_id=None,
    purpose=AccountPurpose.MAIN,
    code="wallet",
    owner="alice",
    kind=AccountKind.LIABILITY,
    currency="BRL",
    status=AccountStatus.ACTIVE,
    allow_negative=False,
    tracking=BalanceTracking.TRACKED,
    metadata=None,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def row(line: int, minor_units: int = 100, **changes: Any) -> Row:
    facts: dict[str, Any] = {
        "code": "wallet",
        "owner": "alice",
        "kind": AccountKind.LIABILITY,
        "amount": Money(minor_units, "BRL"),
        **changes,
    }
    return Row(line, OpeningBalance(**facts))


def standing(opened_with: int | None = None, balance: int = 0, **changes: Any) -> Standing:
    return Standing(replace(WALLET, **changes), balance, opened_with)


def test_o04_a_code_may_stand_in_one_row_only() -> None:
    faults = check_together([row(2), row(3, code="other"), row(4), row(7)])

    assert [(fault.line, fault.reason) for fault in faults] == [
        (4, "the code wallet stands in line 2 already"),
        (7, "the code wallet stands in line 2 already"),
    ]


def test_codes_that_differ_in_case_are_two() -> None:
    assert check_together([row(2), row(3, code="Wallet")]) == []


@pytest.mark.parametrize("kind", AccountKind)
def test_o04_the_total_of_a_currency_must_fit_into_64_bits(kind: AccountKind) -> None:
    rows = [row(2, INT64_MAX, kind=kind), row(3, 1, kind=kind, code="other")]

    (fault,) = check_together(rows)

    assert fault.line is None
    assert fault.reason.startswith("the total in BRL must be at most 92233720368547758.07")
    assert check_together([rows[0], row(3, 0, kind=kind, code="other")]) == []


def test_currencies_and_sides_are_summed_apart() -> None:
    rows = [
        row(2, INT64_MAX),
        row(3, code="bank", kind=AccountKind.ASSET, amount=Money(INT64_MAX, "BRL")),
        row(4, code="yen", amount=Money(INT64_MAX, "JPY")),
    ]

    assert check_together(rows) == []


def test_an_account_that_is_there_as_the_file_says_is_no_fault() -> None:
    for found in (standing(), standing(100, 100), standing(250, 250), standing(None, 7)):
        assert check_beside_ledger([row(2)], {"wallet": found}) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"owner": "bob"}, "with another owner"),
        ({"owner": None}, "with another owner"),
        ({"kind": AccountKind.ASSET}, "with another kind"),
        ({"currency": "USD"}, "with another currency"),
        ({"owner": "bob", "currency": "USD"}, "with another owner and another currency"),
    ],
)
def test_an_account_that_is_there_with_other_facts_is_a_fault(
    changes: dict[str, Any], words: str
) -> None:
    for opened_with in (None, 100):
        (fault,) = check_beside_ledger([row(5)], {"wallet": standing(opened_with, **changes)})

        assert fault.line == 5
        assert fault.reason == f"the account wallet is there already, {words}"


@pytest.mark.parametrize("status", [AccountStatus.FROZEN, AccountStatus.CLOSED])
def test_an_account_that_takes_no_money_is_a_fault_only_where_some_is_to_be_booked(
    status: AccountStatus,
) -> None:
    (fault,) = check_beside_ledger([row(5)], {"wallet": standing(status=status)})

    assert fault.line == 5
    assert fault.reason == f"the account wallet is {status.value.lower()}"
    assert check_beside_ledger([row(5)], {"wallet": standing(100, status=status)}) == []
    assert check_beside_ledger([row(5, 0)], {"wallet": standing(status=status)}) == []


def test_an_account_must_be_able_to_hold_the_amount_beside_what_it_has() -> None:
    assert check_beside_ledger([row(5, INT64_MAX - 7)], {"wallet": standing(None, 7)}) == []

    (fault,) = check_beside_ledger([row(5, INT64_MAX - 6)], {"wallet": standing(None, 7)})

    assert fault.line == 5
    assert "64 bits" in fault.reason


@pytest.mark.parametrize("kind", [AccountKind.LIABILITY, AccountKind.ASSET])
def test_the_equity_account_must_be_able_to_hold_what_is_still_to_be_booked(
    kind: AccountKind,
) -> None:
    lowered = -10 if kind is AccountKind.LIABILITY else 10
    equity = standing(None, lowered, code="system:opening:BRL", owner=None, kind=AccountKind.EQUITY)
    fitting = row(2, INT64_MAX - 10, kind=kind)
    too_much = row(2, INT64_MAX - 8, kind=kind)

    assert check_beside_ledger([fitting], {"system:opening:BRL": equity}) == []
    (fault,) = check_beside_ledger([too_much], {"system:opening:BRL": equity})
    assert fault.line is None
    assert fault.reason.startswith("the account system:opening:BRL couldn't hold")
    # What is booked already is in its balance.
    booked = standing(INT64_MAX - 8, 0, kind=kind)
    standings = {"system:opening:BRL": equity, "wallet": booked}
    assert check_beside_ledger([too_much], standings) == []


def test_a_frozen_equity_account_is_a_fault() -> None:
    equity = standing(code="system:opening:BRL", status=AccountStatus.FROZEN)

    (fault,) = check_beside_ledger([row(2)], {"system:opening:BRL": equity})

    assert fault.reason == "the account system:opening:BRL is frozen"


def test_what_is_still_to_be_booked() -> None:
    rows = [
        row(2, code="new"),
        row(3, 0, code="new and empty"),
        row(4, code="without"),
        row(5, 0, code="empty"),
        row(6, code="booked"),
        row(7, code="booked otherwise"),
    ]
    standings = {
        "without": standing(None),
        "empty": standing(None),
        "booked": standing(100),
        "booked otherwise": standing(99),
    }

    assert [each.line for each in pending(rows, standings)] == [2, 3, 4]

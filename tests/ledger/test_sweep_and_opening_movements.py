"""Sweeps and opening balances: what each says of itself, and the request that a good one becomes."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.ledger.errors import (
    AccountNotFound,
    AmountOverflow,
    InvalidAmount,
    InvalidInput,
    Refusal,
    SameAccount,
)
from app.ledger.model import (
    Account,
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
)
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.openings import opening
from app.ledger.movements.sweeps import SweepCommand, sweep, sweep_by_itself
from app.ledger.requests import LEDGER_CALLER, Gather, PostingRequest, RequestedLeg
from app.ledger.rules import CURRENCY_RULE

ACCOUNT, EQUITY, TRANSACTION = UUID(int=1), UUID(int=2), UUID(int=9)
KEY_RULE = "must be 1 to 128 printable ASCII characters"


def account(kind: AccountKind = AccountKind.LIABILITY) -> Account:
    return Account(
        id=ACCOUNT,
        parent_id=None,
        purpose=AccountPurpose.MAIN,
        code="wallet:alice",
        owner="alice",
        kind=kind,
        currency="BRL",
        status=AccountStatus.ACTIVE,
        allow_negative=False,
        tracking=BalanceTracking.TRACKED,
        metadata=None,
        created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )


def build_opening(
    kind: AccountKind = AccountKind.LIABILITY, **changes: Any
) -> PostingRequest | Refusal:
    arguments: dict[str, Any] = {
        "amount": Money(100, "BRL"),
        "equity_account_id": EQUITY,
        "key": "k",
        "metadata": {"row": 7},
    }
    return opening(
        account(kind), caller="importer", transaction_id=TRANSACTION, **(arguments | changes)
    )


def booked(built: PostingRequest | Refusal) -> PostingRequest:
    assert isinstance(built, PostingRequest)
    return built


def test_a_sweep_leaves_its_legs_to_be_found_under_the_locks() -> None:
    request = booked(sweep(SweepCommand("k", ACCOUNT), "operator", TRANSACTION))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="sweep",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(),
        terms=Gather(account_id=ACCOUNT, path=("accountId",)),
    )


def test_a_sweep_by_itself_is_the_ledgers_own() -> None:
    request = sweep_by_itself(ACCOUNT, "sweep 12", TRANSACTION)

    assert request == PostingRequest(
        id=TRANSACTION,
        type="sweep",
        caller=LEDGER_CALLER,
        key="sweep 12",
        fingerprint=request.fingerprint,
        legs=(),
        terms=Gather(account_id=ACCOUNT, path=("accountId",)),
    )


def test_a_sweep_names_a_key_and_an_account() -> None:
    assert sweep(SweepCommand("", None), "operator", TRANSACTION) == InvalidInput(
        ("idempotencyKey",), KEY_RULE
    )
    assert sweep(SweepCommand("k", None), "operator", TRANSACTION) == AccountNotFound(
        ("accountId",)
    )


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (AccountKind.LIABILITY, 100),
        (AccountKind.EQUITY, 100),
        (AccountKind.REVENUE, 100),
        (AccountKind.ASSET, -100),
        (AccountKind.EXPENSE, -100),
    ],
)
def test_an_opening_raises_the_account_on_its_normal_side(kind: AccountKind, stored: int) -> None:
    request = booked(build_opening(kind))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="opening",
        caller="importer",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            RequestedLeg(
                account_id=EQUITY,
                amount=Money(-stored, "BRL"),
                account_path=("equityAccountId",),
                amount_path=("amount", "minorUnits"),
            ),
            RequestedLeg(
                account_id=ACCOUNT,
                amount=Money(stored, "BRL"),
                account_path=("accountId",),
                amount_path=("amount", "minorUnits"),
            ),
        ),
        metadata={"row": 7},
    )


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"key": "", "amount": Money(0, "BRL")}, InvalidInput(("idempotencyKey",), KEY_RULE)),
        (
            {"amount": Money(0, "BRL"), "metadata": []},
            InvalidAmount(("amount", "minorUnits")),
        ),
        ({"amount": Money(-1, "BRL")}, InvalidAmount(("amount", "minorUnits"))),
        ({"amount": Money(INT64_MAX + 1, "BRL")}, AmountOverflow(("amount", "minorUnits"))),
        ({"amount": Money(1, "XXX")}, InvalidInput(("amount", "currency"), CURRENCY_RULE)),
        (
            {"metadata": [], "equity_account_id": ACCOUNT},
            InvalidInput(("metadata",), "must be a JSON object"),
        ),
        ({"equity_account_id": ACCOUNT}, SameAccount(("equityAccountId",))),
    ],
)
def test_an_opening_that_breaks_a_rule_is_refused(
    changes: dict[str, Any], refusal: Refusal
) -> None:
    assert build_opening(**changes) == refusal


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", Money(101, "BRL")),
        ("equity_account_id", UUID(int=3)),
        ("metadata", None),
    ],
)
def test_every_field_but_the_key_is_part_of_the_fingerprint(field: str, value: Any) -> None:
    original = booked(build_opening()).fingerprint

    assert booked(build_opening(key="another key")).fingerprint == original
    assert booked(build_opening(**{field: value})).fingerprint != original


def test_the_fingerprints_are_the_same_for_ever() -> None:
    """Keys are kept for ever, so a release that computed another one would answer old requests with conflicts."""
    gathered = booked(sweep(SweepCommand("k", ACCOUNT), "operator", TRANSACTION)).fingerprint
    opened = booked(build_opening()).fingerprint

    assert gathered == sweep_by_itself(ACCOUNT, "sweep 12", TRANSACTION).fingerprint
    assert gathered.operation == "sweepAccount"
    assert (
        gathered.sha256.hex() == "bd76fd125c44a7cf833266a64de48528fce8c57638f448fad1e3d991144d5f37"
    )
    assert dict(gathered.fields) == {"accountId": "00000000-0000-0000-0000-000000000001"}
    assert opened.operation == "openAccountBalance"
    assert opened.sha256.hex() == "047bf2f15511a0feb4a52187cc6d301cbef3e39f37ee64e2eb9f3eaac2f91d16"
    assert dict(opened.fields) == {
        "accountId": "00000000-0000-0000-0000-000000000001",
        "equityAccountId": "00000000-0000-0000-0000-000000000002",
        "amount": "100 BRL",
        "metadata": '{"row":7}',
    }

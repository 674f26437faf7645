"""General postings: what a partner's own transaction says of itself, and the request that a good one becomes."""

from dataclasses import replace
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
    RefusalCode,
    SameAccount,
    Unbalanced,
)
from app.ledger.model import Direction
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.postings import (
    BUILT_IN_TYPES,
    LegCommand,
    PostTransactionCommand,
    post_transaction,
)
from app.ledger.requests import PostingRequest, RequestedLeg
from app.ledger.rules import CURRENCY_RULE

RECEIVABLES, MERCHANT, FEES, DOLLARS, POSITION = (UUID(int=number) for number in range(1, 6))
TRANSACTION = UUID(int=9)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def debit(account_id: UUID | None, minor_units: int, currency: str = "BRL") -> LegCommand:
    return LegCommand(account_id, Direction.DEBIT, Money(minor_units, currency))


def credit(account_id: UUID | None, minor_units: int, currency: str = "BRL") -> LegCommand:
    return LegCommand(account_id, Direction.CREDIT, Money(minor_units, currency))


SALE = PostTransactionCommand(
    key="k",
    type="card_sale",
    legs=(
        debit(RECEIVABLES, 10_000),
        replace(credit(MERCHANT, 9_750), if_sequence=4),
        credit(FEES, 250),
    ),
    effective_at=NOON,
    description="sale",
    metadata={"order": 7},
)


def build(**changes: Any) -> PostingRequest | Refusal:
    return post_transaction(replace(SALE, **changes), "operator", TRANSACTION)


def test_the_legs_are_booked_as_they_are_given_credits_positive() -> None:
    request = build()

    assert isinstance(request, PostingRequest)
    assert request == PostingRequest(
        id=TRANSACTION,
        type="card_sale",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            RequestedLeg(
                account_id=RECEIVABLES,
                amount=Money(-10_000, "BRL"),
                account_path=("legs", "0", "accountId"),
                amount_path=("legs", "0", "amount", "minorUnits"),
            ),
            RequestedLeg(
                account_id=MERCHANT,
                amount=Money(9_750, "BRL"),
                account_path=("legs", "1", "accountId"),
                amount_path=("legs", "1", "amount", "minorUnits"),
                if_sequence=4,
            ),
            RequestedLeg(
                account_id=FEES,
                amount=Money(250, "BRL"),
                account_path=("legs", "2", "accountId"),
                amount_path=("legs", "2", "amount", "minorUnits"),
            ),
        ),
        description="sale",
        metadata={"order": 7},
        effective_at=NOON,
    )
    assert request.hold_id is None
    assert request.reverses_id is None


def test_each_currency_is_balanced_by_itself() -> None:
    request = build(
        legs=(
            debit(MERCHANT, 500),
            credit(POSITION, 500),
            debit(FEES, 90, "USD"),
            credit(DOLLARS, 90, "USD"),
        )
    )

    assert isinstance(request, PostingRequest)
    assert [leg.amount for leg in request.legs] == [
        Money(-500, "BRL"),
        Money(500, "BRL"),
        Money(-90, "USD"),
        Money(90, "USD"),
    ]


def test_one_account_may_have_several_legs_on_one_side() -> None:
    request = build(legs=(debit(MERCHANT, 60), credit(FEES, 20), credit(FEES, 40)))

    assert isinstance(request, PostingRequest)
    assert [leg.account_id for leg in request.legs] == [MERCHANT, FEES, FEES]


@pytest.mark.parametrize(
    "name",
    ["a", "x9", "card_sale", "a_1", "a_b_c", "a" * 32, "transfers", "hold_fee", "pix_out", "card"],
)
def test_a_type_is_lower_case_words_joined_by_underscores(name: str) -> None:
    request = build(type=name)

    assert isinstance(request, PostingRequest)
    assert request.type == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "_",
        "9a",
        "_a",
        "a_",
        "a__b",
        "A",
        "cardSale",
        "card-sale",
        "card sale",
        "a\n",
        "é",
        "\u0661a",
        "a\u0661",
        "a\0",
        "a" * 33,
        "a" * 100_000,
    ],
)
def test_any_other_type_is_refused(name: str) -> None:
    assert build(type=name) == InvalidInput(
        ("type",),
        "must be at most 32 characters: words of a to z and 0 to 9, joined by _, the first beginning with a letter",
    )


@pytest.mark.parametrize("name", sorted(BUILT_IN_TYPES))
def test_a_type_is_none_of_the_ledgers_own(name: str) -> None:
    assert build(type=name) == InvalidInput(
        ("type",), "must not be the name of a built-in movement"
    )


def test_the_ledgers_own_types_are_those_of_the_api() -> None:
    assert sorted(BUILT_IN_TYPES) == [
        "capture",
        "deposit",
        "hold",
        "opening",
        "refund",
        "release",
        "reversal",
        "sweep",
        "transfer",
        "withdrawal",
    ]


def fan_out(receivers: int) -> tuple[LegCommand, ...]:
    return (
        debit(MERCHANT, receivers),
        *(credit(UUID(int=1_000 + number), 1) for number in range(receivers)),
    )


@pytest.mark.parametrize("legs", [(), (debit(MERCHANT, 1),), fan_out(200), fan_out(5_000)])
def test_there_are_2_to_200_legs(legs: tuple[LegCommand, ...]) -> None:
    assert build(legs=legs) == InvalidInput(("legs",), "must be 2 to 200")


@pytest.mark.parametrize("receivers", [1, 199])
def test_2_and_200_legs_are_taken(receivers: int) -> None:
    request = build(legs=fan_out(receivers))

    assert isinstance(request, PostingRequest)
    assert len(request.legs) == receivers + 1
    assert request.legs[-1].account_path == ("legs", str(receivers), "accountId")


@pytest.mark.parametrize(
    ("amount", "refusal"),
    [
        (Money(0, "BRL"), InvalidAmount(("legs", "1", "amount", "minorUnits"))),
        (Money(-100, "BRL"), InvalidAmount(("legs", "1", "amount", "minorUnits"))),
        (Money(INT64_MAX + 1, "BRL"), AmountOverflow(("legs", "1", "amount", "minorUnits"))),
        (Money(1, "XAU"), InvalidInput(("legs", "1", "amount", "currency"), CURRENCY_RULE)),
    ],
)
def test_the_amount_of_a_leg_is_positive_money(amount: Money, refusal: Refusal) -> None:
    wrong = LegCommand(FEES, Direction.CREDIT, amount)

    assert build(legs=(debit(MERCHANT, 100), wrong, wrong)) == refusal


def test_an_id_that_names_nothing_is_an_account_that_is_not_there() -> None:
    assert build(legs=(debit(MERCHANT, 1), credit(None, 1))) == AccountNotFound(
        ("legs", "1", "accountId")
    )


@pytest.mark.parametrize(
    ("legs", "number"),
    [
        ((debit(MERCHANT, 1), credit(MERCHANT, 1)), "1"),
        ((credit(MERCHANT, 5), debit(FEES, 4), debit(MERCHANT, 1)), "2"),
    ],
)
def test_no_account_stands_on_both_sides(legs: tuple[LegCommand, ...], number: str) -> None:
    assert build(legs=legs) == SameAccount(("legs", number, "accountId"))


@pytest.mark.parametrize(
    ("legs", "currency", "debits", "credits_"),
    [
        ((debit(MERCHANT, 100), credit(FEES, 99)), "BRL", 100, 99),
        ((debit(MERCHANT, 100), debit(FEES, 1)), "BRL", 101, 0),
        # The sum of all currencies together is no sum.
        ((debit(MERCHANT, 100), credit(DOLLARS, 100, "USD")), "BRL", 100, 0),
        (
            (debit(MERCHANT, 5), credit(FEES, 5), credit(DOLLARS, 1, "USD"), debit(POSITION, 2)),
            "BRL",
            7,
            5,
        ),
        (
            (debit(MERCHANT, INT64_MAX), debit(POSITION, INT64_MAX), credit(FEES, 1)),
            "BRL",
            2 * INT64_MAX,
            1,
        ),
    ],
)
def test_debits_equal_credits_in_each_currency(
    legs: tuple[LegCommand, ...], currency: str, debits: int, credits_: int
) -> None:
    assert build(legs=legs) == Unbalanced(
        ("legs",), currency=currency, debits=debits, credits=credits_
    )


def test_the_first_wrong_field_is_the_one_that_is_told() -> None:
    """Everything is wrong at first; each field that is put right uncovers the next."""
    steps: list[tuple[str, Any, RefusalCode]] = [
        ("key", "", RefusalCode.INVALID_INPUT),
        ("type", "transfer", RefusalCode.INVALID_INPUT),
        ("legs", (), RefusalCode.INVALID_INPUT),
        ("effective_at", datetime(1, 1, 1, tzinfo=UTC), RefusalCode.INVALID_INPUT),
        ("description", "x" * 501, RefusalCode.INVALID_INPUT),
        ("metadata", [], RefusalCode.INVALID_INPUT),
    ]
    wrong = {field: value for field, value, _ in steps}
    paths: list[tuple[str, ...]] = []
    for field, _, code in steps:
        refusal = build(**wrong)
        assert isinstance(refusal, Refusal)
        assert refusal.code is code
        paths.append(refusal.path)
        del wrong[field]
    assert isinstance(build(**wrong), PostingRequest)
    assert paths == [
        ("idempotencyKey",),
        ("type",),
        ("legs",),
        ("effectiveAt",),
        ("description",),
        ("metadata",),
    ]


def test_an_account_is_looked_for_before_the_legs_are_summed() -> None:
    assert build(legs=(debit(MERCHANT, 1), credit(None, 2))) == AccountNotFound(
        ("legs", "1", "accountId")
    )
    assert build(legs=(debit(MERCHANT, 1), credit(MERCHANT, 2))) == SameAccount(
        ("legs", "1", "accountId")
    )


SALE_LEGS = SALE.legs


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "card_sales"),
        ("legs", (debit(RECEIVABLES, 10_000), credit(MERCHANT, 9_750), credit(FEES, 250))),
        ("legs", (debit(RECEIVABLES, 10_000), SALE_LEGS[1], credit(DOLLARS, 250))),
        ("legs", tuple(reversed(SALE_LEGS))),
        ("legs", (credit(RECEIVABLES, 10_000), debit(MERCHANT, 9_750), debit(FEES, 250))),
        ("effective_at", None),
        ("description", None),
        ("metadata", {}),
    ],
)
def test_every_field_but_the_key_is_part_of_the_fingerprint(field: str, value: Any) -> None:
    original, same, other = build(), build(key="another key"), build(**{field: value})

    assert isinstance(original, PostingRequest)
    assert isinstance(same, PostingRequest)
    assert isinstance(other, PostingRequest)
    assert same.fingerprint == original.fingerprint
    names = {"effective_at": "effectiveAt"}
    differing = {
        name
        for name in original.fingerprint.fields.keys() | other.fingerprint.fields.keys()
        if original.fingerprint.fields.get(name) != other.fingerprint.fields.get(name)
    }
    assert differing == {names.get(field, field)}
    assert other.fingerprint.sha256 != original.fingerprint.sha256


def test_the_fingerprint_is_the_same_for_ever() -> None:
    """Keys are kept for ever, so a release that computed another one would answer old requests with conflicts."""
    request = build()

    assert isinstance(request, PostingRequest)
    assert request.fingerprint.operation == "postTransaction"
    assert (
        request.fingerprint.sha256.hex()
        == "2ac6ae7bac63139c9eb96fbf97d6b4af5f2d2fb518c0eac96135ede703def06e"
    )
    assert dict(request.fingerprint.fields) == {
        "type": "card_sale",
        "legs": "sha256:1670ddf72ab069594224f9bfcf0e66bb6054b0b1cd46bc8af6ba4f35dd5a8013",
        "effectiveAt": "2026-03-01T12:00:00+00:00",
        "description": "sale",
        "metadata": '{"order":7}',
    }

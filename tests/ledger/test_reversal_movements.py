"""Reversals and refunds: which transactions can be taken back, and the request that takes one back."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.ledger.errors import (
    AmountOverflow,
    CurrencyMismatch,
    InvalidAmount,
    InvalidInput,
    NotReversible,
    Refusal,
    TransactionNotFound,
)
from app.ledger.model import AccountPurpose, Leg, Transaction
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.postings import BUILT_IN_TYPES
from app.ledger.movements.reversals import RefundCommand, ReverseCommand, refund, reverse
from app.ledger.requests import PostingRequest, RequestedLeg, TakeBack
from app.ledger.rules import CURRENCY_RULE

ALICE, BOB, FEES, DOLLARS, POSITION = (UUID(int=number) for number in range(1, 6))
ORIGINAL, TRANSACTION = UUID(int=8), UUID(int=9)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AMOUNT_PATH = ("amount", "minorUnits")
PATH = ("transactionId",)
MAIN, HELD, STRIPE = AccountPurpose.MAIN, AccountPurpose.HELD, AccountPurpose.STRIPE


def leg(
    account_id: UUID, amount: int, purpose: AccountPurpose = MAIN, currency: str = "BRL"
) -> Leg:
    return Leg(account_id, None, None, purpose, currency, amount)


def transaction(*legs: Leg, type_: str = "transfer") -> Transaction:
    return Transaction(
        id=ORIGINAL,
        type=type_,
        caller="alice",
        description="lunch",
        external_reference="statement 12",
        metadata={"order": 7},
        effective_at=NOON,
        posted_at=NOON,
        reverses_id=None,
        hold_id=None,
        legs=legs,
    )


TRANSFER = transaction(leg(ALICE, -100), leg(BOB, 100))
SPLIT = transaction(leg(ALICE, -100), leg(BOB, 97), leg(FEES, 3), type_="card_sale")
REVERSE = ReverseCommand(key="k", transaction_id=ORIGINAL, reason="paid twice")
REFUND = RefundCommand(
    key="k", transaction_id=ORIGINAL, amount=Money(40, "BRL"), reason="cold soup"
)


def build_reversal(
    original: Transaction | None = TRANSFER, **changes: Any
) -> PostingRequest | Refusal:
    return reverse(replace(REVERSE, **changes), original, "operator", TRANSACTION)


def build_refund(
    original: Transaction | None = TRANSFER, **changes: Any
) -> PostingRequest | Refusal:
    return refund(replace(REFUND, **changes), original, "operator", TRANSACTION)


both = pytest.mark.parametrize("build", [build_reversal, build_refund])


def booked(built: PostingRequest | Refusal) -> PostingRequest:
    assert isinstance(built, PostingRequest)
    return built


def moved(request: PostingRequest) -> list[tuple[UUID, int, str]]:
    return [(leg.account_id, leg.amount.minor_units, leg.amount.currency) for leg in request.legs]


def test_a_reversal_swaps_the_sides_of_every_leg_and_points_to_the_original() -> None:
    request = booked(build_reversal(SPLIT))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="reversal",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=tuple(
            RequestedLeg(
                account_id=account_id,
                amount=Money(amount, "BRL"),
                account_path=PATH,
                amount_path=PATH,
            )
            for account_id, amount in ((ALICE, 100), (BOB, -97), (FEES, -3))
        ),
        terms=TakeBack(
            original_id=ORIGINAL,
            original_amount=100,
            amount=100,
            whole=True,
            currency="BRL",
            path=PATH,
            amount_path=PATH,
        ),
        description="paid twice",
    )
    assert request.reverses_id == ORIGINAL


def test_a_refund_moves_its_amount_back_and_points_to_the_original() -> None:
    request = booked(build_refund())

    assert request == PostingRequest(
        id=TRANSACTION,
        type="refund",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=tuple(
            RequestedLeg(
                account_id=account_id,
                amount=Money(amount, "BRL"),
                account_path=PATH,
                amount_path=AMOUNT_PATH,
            )
            for account_id, amount in ((ALICE, 40), (BOB, -40))
        ),
        terms=TakeBack(
            original_id=ORIGINAL,
            original_amount=100,
            amount=40,
            whole=False,
            currency="BRL",
            path=PATH,
            amount_path=AMOUNT_PATH,
        ),
        description="cold soup",
    )
    assert request.reverses_id == ORIGINAL


def test_a_reversal_keeps_several_legs_of_one_account_apart() -> None:
    original = transaction(leg(ALICE, -100), leg(BOB, 60), leg(BOB, 40), type_="payout")

    assert moved(booked(build_reversal(original))) == [
        (ALICE, 100, "BRL"),
        (BOB, -60, "BRL"),
        (BOB, -40, "BRL"),
    ]


def test_a_reversal_takes_back_every_currency() -> None:
    request = booked(
        build_reversal(
            transaction(
                leg(ALICE, -500),
                leg(POSITION, 500),
                leg(FEES, -90, currency="USD"),
                leg(DOLLARS, 90, currency="USD"),
                type_="exchange",
            )
        )
    )

    assert moved(request) == [
        (ALICE, 500, "BRL"),
        (POSITION, -500, "BRL"),
        (FEES, 90, "USD"),
        (DOLLARS, -90, "USD"),
    ]
    assert isinstance(request.terms, TakeBack)
    assert request.terms.original_amount == request.terms.amount == 590


def test_what_stripes_gave_goes_back_to_their_account_in_one_leg() -> None:
    """ALICE's account is striped; her debit drew on three stripes."""
    original = transaction(
        leg(ALICE, -50, STRIPE), leg(ALICE, -20, STRIPE), leg(ALICE, -30, STRIPE), leg(BOB, 100)
    )

    assert moved(booked(build_reversal(original))) == [(ALICE, 100, "BRL"), (BOB, -100, "BRL")]
    assert moved(booked(build_refund(original))) == [(ALICE, 40, "BRL"), (BOB, -40, "BRL")]


@pytest.mark.parametrize(
    "legs",
    [
        pytest.param((leg(ALICE, -100, HELD), leg(BOB, 100)), id="all of it"),
        pytest.param((leg(ALICE, -140, HELD), leg(BOB, 100), leg(ALICE, 40)), id="in part"),
        pytest.param(
            (
                leg(ALICE, -140, HELD),
                leg(BOB, 100, STRIPE),
                leg(ALICE, 25, STRIPE),
                leg(ALICE, 15, STRIPE),
            ),
            id="between striped accounts",
        ),
    ],
)
def test_a_capture_is_taken_back_by_its_net_effect(legs: tuple[Leg, ...]) -> None:
    """What it released stays released, and what it paid comes back as available and not as held."""
    original = transaction(*legs, type_="capture")
    whole, part = booked(build_reversal(original)), booked(build_refund(original))

    assert moved(whole) == [(ALICE, 100, "BRL"), (BOB, -100, "BRL")]
    assert moved(part) == [(ALICE, 40, "BRL"), (BOB, -40, "BRL")]
    for request in (whole, part):
        assert {leg.purpose for leg in request.legs} == {MAIN}
        assert isinstance(request.terms, TakeBack)
        assert request.terms.original_amount == 100


def test_a_refund_goes_the_other_way_whichever_leg_comes_first() -> None:
    original = transaction(leg(BOB, 100), leg(ALICE, -100), type_="deposit")

    assert moved(booked(build_refund(original))) == [(BOB, -40, "BRL"), (ALICE, 40, "BRL")]


def test_a_refund_counts_accounts_and_not_legs() -> None:
    original = transaction(leg(ALICE, -100), leg(BOB, 60), leg(BOB, 40), type_="payout")
    request = booked(build_refund(original))

    assert moved(request) == [(ALICE, 40, "BRL"), (BOB, -40, "BRL")]
    assert isinstance(request.terms, TakeBack)
    assert request.terms.original_amount == 100


@pytest.mark.parametrize("minor_units", [1, 100, 101, INT64_MAX])
def test_how_much_is_left_is_judged_under_the_locks_alone(minor_units: int) -> None:
    terms = booked(build_refund(amount=Money(minor_units, "BRL"))).terms

    assert isinstance(terms, TakeBack)
    assert (terms.original_amount, terms.amount) == (100, minor_units)


@pytest.mark.parametrize("type_", ["transfer", "deposit", "capture", "opening", "card_sale"])
@both
def test_whatever_paid_somebody_can_be_taken_back(build: Any, type_: str) -> None:
    booked(build(replace(TRANSFER, type=type_)))


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        ("hold", "a hold is given back by voiding it, and a withdrawal by settling it as failed"),
        ("release", "what was released can be held again by a new hold or withdrawal"),
        ("withdrawal", "what has left for a bank comes back by a deposit"),
        ("sweep", "a sweep changes no account's balance"),
        ("reversal", "a reversal is final; what it took back can be booked anew"),
        ("refund", "a refund is final; what it gave back can be booked anew"),
    ],
)
@both
def test_what_paid_nobody_or_took_back_itself_is_not_reversible(
    build: Any, type_: str, rule: str
) -> None:
    assert type_ in BUILT_IN_TYPES
    assert build(replace(TRANSFER, type=type_)) == NotReversible(PATH, rule)


@pytest.mark.parametrize(
    "original",
    [
        SPLIT,
        transaction(
            leg(ALICE, -1),
            leg(POSITION, 1),
            leg(FEES, -1, currency="USD"),
            leg(DOLLARS, 1, currency="USD"),
            type_="exchange",
        ),
    ],
)
def test_only_what_moved_between_two_accounts_is_refunded(original: Transaction) -> None:
    assert build_refund(original) == NotReversible(
        PATH, "only what moved between two accounts can be refunded in part"
    )


def test_a_refund_is_of_the_currency_of_the_original() -> None:
    assert build_refund(amount=Money(40, "USD")) == CurrencyMismatch(
        ("amount", "currency"), account_currency="BRL", currency="USD"
    )


@both
def test_an_original_that_is_not_there_is_refused(build: Any) -> None:
    for refusal in (build(None), build(transaction_id=None), build(transaction_id=UUID(int=7))):
        assert refusal == TransactionNotFound(PATH)


@both
@pytest.mark.parametrize("key", ["", "k" * 129, "line\n", "café"])
def test_a_key_is_1_to_128_printable_ascii_characters(build: Any, key: str) -> None:
    assert build(key=key) == InvalidInput(
        ("idempotencyKey",), "must be 1 to 128 printable ASCII characters"
    )


@both
def test_a_reason_has_a_limit_in_characters_and_can_be_stored(build: Any) -> None:
    assert build(reason="x" * 501) == InvalidInput(("reason",), "must have at most 500 characters")
    assert build(reason="a\0b") == InvalidInput(
        ("reason",), "must not contain U+0000 or lone surrogates"
    )
    for text in ("", "x" * 500):
        assert booked(build(reason=text)).description == text


def test_a_refund_needs_no_reason() -> None:
    assert booked(build_refund(reason=None)).description is None


@pytest.mark.parametrize(
    ("amount", "refusal"),
    [
        (Money(0, "BRL"), InvalidAmount(AMOUNT_PATH)),
        (Money(-1, "BRL"), InvalidAmount(AMOUNT_PATH)),
        (Money(INT64_MAX + 1, "BRL"), AmountOverflow(AMOUNT_PATH)),
        (Money(1, "XXX"), InvalidInput(("amount", "currency"), CURRENCY_RULE)),
    ],
)
def test_a_refund_is_positive_money(amount: Money, refusal: Refusal) -> None:
    assert build_refund(amount=amount) == refusal


def test_the_first_wrong_field_is_the_one_that_is_told() -> None:
    """Everything is wrong at first; each field that is put right uncovers the next."""
    nothing, dollars = Money(0, "BRL"), Money(1, "USD")
    final = replace(SPLIT, type="refund")
    told = [
        build_refund(None, key="", amount=nothing, reason="\0"),
        build_refund(None, amount=nothing, reason="\0"),
        build_refund(None, amount=dollars, reason="\0"),
        build_refund(None, amount=dollars),
        build_refund(final, amount=dollars),
        build_refund(SPLIT, amount=dollars),
        build_refund(amount=dollars),
    ]

    assert [(type(refusal), refusal.path) for refusal in told if isinstance(refusal, Refusal)] == [
        (InvalidInput, ("idempotencyKey",)),
        (InvalidAmount, AMOUNT_PATH),
        (InvalidInput, ("reason",)),
        (TransactionNotFound, PATH),
        (NotReversible, PATH),
        (NotReversible, PATH),
        (CurrencyMismatch, ("amount", "currency")),
    ]
    assert told[4] != told[5]
    assert [
        refusal.path
        for refusal in (
            build_reversal(None, key="", reason="\0"),
            build_reversal(None, reason="\0"),
            build_reversal(None),
        )
        if isinstance(refusal, Refusal)
    ] == [("idempotencyKey",), ("reason",), PATH]


def test_every_field_but_the_key_is_part_of_the_fingerprint() -> None:
    other = replace(TRANSFER, id=UUID(int=7))
    for build in (build_reversal, build_refund):
        original = booked(build()).fingerprint
        assert booked(build(key="another key")).fingerprint == original
        assert booked(build(reason="other")).fingerprint != original
        assert booked(build(other, transaction_id=other.id)).fingerprint != original
    assert (
        booked(build_refund(amount=Money(41, "BRL"))).fingerprint
        != booked(build_refund()).fingerprint
    )


def test_the_fingerprints_are_the_same_for_ever() -> None:
    """Keys are kept for ever, so a release that computed another one would answer old requests with conflicts."""
    whole, part = booked(build_reversal()).fingerprint, booked(build_refund()).fingerprint

    assert whole.operation == "reverseTransaction"
    assert whole.sha256.hex() == "85438ff9f81c1e1b9ac82871355cd013ad378bc224a4e9a2ef57b85c18cef325"
    assert dict(whole.fields) == {
        "transactionId": "00000000-0000-0000-0000-000000000008",
        "reason": "paid twice",
    }
    assert part.operation == "refundTransaction"
    assert part.sha256.hex() == "c9b4730ab6b21b5dd994379f56e96057a6400d77390c65c7f3ca2b66005809ef"
    assert dict(part.fields) == {
        "transactionId": "00000000-0000-0000-0000-000000000008",
        "amount": "40 BRL",
        "reason": "cold soup",
    }

"""Holds and withdrawals: what each command says of itself, and the request that a good one becomes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.ledger.errors import (
    AccountNotFound,
    AmountOverflow,
    CaptureExceedsHold,
    CurrencyMismatch,
    HoldNotFound,
    InvalidAmount,
    InvalidInput,
    Refusal,
    SameAccount,
    WithdrawalNotFound,
)
from app.ledger.idempotency import Fingerprint
from app.ledger.model import AccountPurpose, HoldPurpose, HoldStatus
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.holds import (
    CaptureHoldCommand,
    HeldMoney,
    PlaceHoldCommand,
    VoidHoldCommand,
    capture_hold,
    expire_hold,
    place_hold,
    void_hold,
)
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
    settle_withdrawal,
    withdraw,
)
from app.ledger.requests import LEDGER_CALLER, CloseHold, PlaceHold, PostingRequest, RequestedLeg
from app.ledger.rules import CURRENCY_RULE

WALLET, MERCHANT, CLEARING = UUID(int=1), UUID(int=2), UUID(int=3)
TRANSACTION, HOLD = UUID(int=9), UUID(int=10)
STRIPES = tuple(UUID(int=number) for number in range(21, 24))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AMOUNT_PATH = ("amount", "minorUnits")

HELD = HeldMoney(
    hold_id=HOLD,
    account_id=WALLET,
    purpose=HoldPurpose.HOLD,
    currency="BRL",
    amount=100,
    stripes=(),
)
PENDING = replace(HELD, purpose=HoldPurpose.WITHDRAWAL)
STRIPED_HELD = replace(HELD, stripes=((STRIPES[2], 50), (STRIPES[0], 20), (STRIPES[1], 30)))

PLACE = PlaceHoldCommand(
    key="k",
    account_id=WALLET,
    amount=Money(100, "BRL"),
    expires_at=NOON,
    description="deposit of a rented car",
    metadata={"rent": 7},
)
CAPTURE = CaptureHoldCommand(
    key="k",
    hold_id=HOLD,
    to_account_id=MERCHANT,
    amount=Money(60, "BRL"),
    description="petrol",
)
VOID = VoidHoldCommand(key="k", hold_id=HOLD)
WITHDRAW = WithdrawCommand(
    key="k",
    account_id=WALLET,
    amount=Money(100, "BRL"),
    external_reference="pix 1",
    description="rent",
    metadata={"bank": "001"},
)
COMPLETE = SettleWithdrawalCommand(
    key="k",
    withdrawal_id=HOLD,
    outcome=SettlementOutcome.COMPLETED,
    external_reference="E001",
)
FAIL = replace(COMPLETE, outcome=SettlementOutcome.FAILED, failure_reason="account closed")

Build = Callable[..., PostingRequest | Refusal]


def build_place(**changes: Any) -> PostingRequest | Refusal:
    return place_hold(replace(PLACE, **changes), "operator", TRANSACTION, HOLD, owner=None)


def build_capture(held: HeldMoney | None = HELD, **changes: Any) -> PostingRequest | Refusal:
    return capture_hold(replace(CAPTURE, **changes), held, "operator", TRANSACTION)


def build_void(held: HeldMoney | None = HELD, **changes: Any) -> PostingRequest | Refusal:
    return void_hold(replace(VOID, **changes), held, "operator", TRANSACTION)


def build_withdraw(**changes: Any) -> PostingRequest | Refusal:
    return withdraw(replace(WITHDRAW, **changes), "alice", TRANSACTION, HOLD)


def build_completed(
    held: HeldMoney | None = PENDING, clearing: UUID | None = CLEARING, **changes: Any
) -> PostingRequest | Refusal:
    return settle_withdrawal(replace(COMPLETE, **changes), held, clearing, "operator", TRANSACTION)


def build_failed(held: HeldMoney | None = PENDING, **changes: Any) -> PostingRequest | Refusal:
    return settle_withdrawal(replace(FAIL, **changes), held, None, "operator", TRANSACTION)


def booked(built: PostingRequest | Refusal) -> PostingRequest:
    assert isinstance(built, PostingRequest)
    assert sum(leg.amount.minor_units for leg in built.legs) == 0
    return built


def out_of_hold(path: tuple[str, ...], amount_path: tuple[str, ...], **more: Any) -> RequestedLeg:
    return RequestedLeg(
        account_id=WALLET,
        amount=Money(-100, "BRL"),
        account_path=path,
        amount_path=amount_path,
        purpose=AccountPurpose.HELD,
        **more,
    )


def given_back(minor_units: int, path: tuple[str, ...], **more: Any) -> RequestedLeg:
    return RequestedLeg(
        account_id=WALLET,
        amount=Money(minor_units, "BRL"),
        account_path=path,
        amount_path=path,
        releases=True,
        **more,
    )


def set_aside(owner: str | None) -> tuple[RequestedLeg, ...]:
    available = RequestedLeg(
        account_id=WALLET,
        amount=Money(-100, "BRL"),
        account_path=("accountId",),
        amount_path=AMOUNT_PATH,
        owner=owner,
        credit_normal=True,
    )
    return (
        available,
        replace(available, amount=Money(100, "BRL"), purpose=AccountPurpose.HELD),
    )


@pytest.mark.parametrize("owner", [None, "alice"])
def test_placing_moves_the_amount_into_the_held_child(owner: str | None) -> None:
    request = booked(place_hold(PLACE, "operator", TRANSACTION, HOLD, owner=owner))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="hold",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=set_aside(owner),
        terms=PlaceHold(
            hold_id=HOLD,
            account_id=WALLET,
            purpose=HoldPurpose.HOLD,
            amount=100,
            expires_at=NOON,
        ),
        description="deposit of a rented car",
        metadata={"rent": 7},
    )
    assert request.hold_id == HOLD


def test_who_must_own_the_account_is_no_part_of_what_is_asked() -> None:
    one = booked(place_hold(PLACE, "alice", TRANSACTION, HOLD, owner="alice"))
    other = booked(place_hold(PLACE, "alice", TRANSACTION, HOLD, owner=None))

    assert one.fingerprint == other.fingerprint


def test_a_capture_in_part_pays_the_target_and_releases_the_rest() -> None:
    request = booked(build_capture())

    assert request == PostingRequest(
        id=TRANSACTION,
        type="capture",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            out_of_hold(("holdId",), AMOUNT_PATH),
            RequestedLeg(
                account_id=MERCHANT,
                amount=Money(60, "BRL"),
                account_path=("toAccountId",),
                amount_path=AMOUNT_PATH,
            ),
            given_back(40, ("holdId",)),
        ),
        terms=CloseHold(
            hold_id=HOLD,
            purpose=HoldPurpose.HOLD,
            path=("holdId",),
            status=HoldStatus.CAPTURED,
            captured=60,
        ),
        description="petrol",
    )
    assert request.hold_id == HOLD


def test_a_capture_of_all_releases_nothing() -> None:
    named, left_out = (booked(build_capture(amount=amount)) for amount in (Money(100, "BRL"), None))

    assert [(leg.account_id, leg.amount.minor_units, leg.purpose) for leg in named.legs] == [
        (WALLET, -100, AccountPurpose.HELD),
        (MERCHANT, 100, AccountPurpose.MAIN),
    ]
    assert isinstance(named.terms, CloseHold)
    assert named.terms.captured == 100
    assert left_out == named


@pytest.mark.parametrize(
    ("captured", "stripes"),
    [
        (0, ((STRIPES[2], 50), (STRIPES[0], 20), (STRIPES[1], 30))),
        (1, ((STRIPES[2], 50), (STRIPES[0], 20), (STRIPES[1], 29))),
        (30, ((STRIPES[2], 50), (STRIPES[0], 20))),
        (31, ((STRIPES[2], 50), (STRIPES[0], 19))),
        (50, ((STRIPES[2], 50),)),
        (99, ((STRIPES[2], 1),)),
    ],
)
def test_what_is_released_goes_back_to_the_stripes_that_gave_it_in_their_order(
    captured: int, stripes: tuple[tuple[UUID, int], ...]
) -> None:
    request = booked(
        build_capture(STRIPED_HELD, amount=Money(captured, "BRL"))
        if captured
        else build_void(STRIPED_HELD)
    )

    assert request.legs[-1] == given_back(100 - captured, ("holdId",), stripes=stripes)
    assert [leg.stripes for leg in request.legs[:-1]] == [()] * (len(request.legs) - 1)


def test_a_void_gives_everything_back_even_where_the_account_is_frozen() -> None:
    request = booked(build_void())

    assert request == PostingRequest(
        id=TRANSACTION,
        type="release",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            out_of_hold(("holdId",), ("holdId",), releases=True),
            given_back(100, ("holdId",)),
        ),
        terms=CloseHold(
            hold_id=HOLD,
            purpose=HoldPurpose.HOLD,
            path=("holdId",),
            status=HoldStatus.VOIDED,
            captured=0,
        ),
    )


def test_an_expiry_gives_everything_back_under_a_key_that_follows_from_the_hold() -> None:
    request = booked(expire_hold(STRIPED_HELD, TRANSACTION))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="release",
        caller=LEDGER_CALLER,
        key="expire 00000000-0000-0000-0000-00000000000a",
        fingerprint=request.fingerprint,
        legs=(
            out_of_hold(("holdId",), ("holdId",), releases=True),
            given_back(100, ("holdId",), stripes=STRIPED_HELD.stripes),
        ),
        terms=CloseHold(
            hold_id=HOLD,
            purpose=HoldPurpose.HOLD,
            path=("holdId",),
            status=HoldStatus.EXPIRED,
            captured=0,
        ),
    )
    assert expire_hold(STRIPED_HELD, UUID(int=11)).fingerprint == request.fingerprint


def test_a_withdrawal_is_a_hold_on_an_account_of_the_callers() -> None:
    request = booked(build_withdraw())

    assert request == PostingRequest(
        id=TRANSACTION,
        type="hold",
        caller="alice",
        key="k",
        fingerprint=request.fingerprint,
        legs=set_aside("alice"),
        terms=PlaceHold(
            hold_id=HOLD,
            account_id=WALLET,
            purpose=HoldPurpose.WITHDRAWAL,
            amount=100,
            expires_at=None,
        ),
        description="rent",
        external_reference="pix 1",
        metadata={"bank": "001"},
    )


def test_a_completed_withdrawal_pays_the_clearing_account() -> None:
    request = booked(build_completed())

    assert request == PostingRequest(
        id=TRANSACTION,
        type="withdrawal",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            out_of_hold(("withdrawalId",), ("withdrawalId",)),
            RequestedLeg(
                account_id=CLEARING,
                amount=Money(100, "BRL"),
                account_path=("withdrawalId",),
                amount_path=("withdrawalId",),
            ),
        ),
        terms=CloseHold(
            hold_id=HOLD,
            purpose=HoldPurpose.WITHDRAWAL,
            path=("withdrawalId",),
            status=HoldStatus.CAPTURED,
            captured=100,
            external_reference="E001",
        ),
        external_reference="E001",
    )


def test_a_failed_withdrawal_gives_everything_back_even_where_the_account_is_frozen() -> None:
    request = booked(build_failed(replace(STRIPED_HELD, purpose=HoldPurpose.WITHDRAWAL)))

    assert request == PostingRequest(
        id=TRANSACTION,
        type="release",
        caller="operator",
        key="k",
        fingerprint=request.fingerprint,
        legs=(
            out_of_hold(("withdrawalId",), ("withdrawalId",), releases=True),
            given_back(100, ("withdrawalId",), stripes=STRIPED_HELD.stripes),
        ),
        terms=CloseHold(
            hold_id=HOLD,
            purpose=HoldPurpose.WITHDRAWAL,
            path=("withdrawalId",),
            status=HoldStatus.VOIDED,
            captured=0,
            external_reference="E001",
            failure_reason="account closed",
        ),
        external_reference="E001",
    )


@pytest.mark.parametrize(
    "build",
    [build_place, build_capture, build_void, build_withdraw, build_completed, build_failed],
)
@pytest.mark.parametrize("key", ["", "k" * 129, "line\n", "café"])
def test_a_key_is_1_to_128_printable_ascii_characters(build: Build, key: str) -> None:
    assert build(key=key) == InvalidInput(
        ("idempotencyKey",), "must be 1 to 128 printable ASCII characters"
    )


@pytest.mark.parametrize("build", [build_place, build_capture, build_withdraw])
@pytest.mark.parametrize(
    ("amount", "refusal"),
    [
        (Money(0, "BRL"), InvalidAmount(AMOUNT_PATH)),
        (Money(-1, "BRL"), InvalidAmount(AMOUNT_PATH)),
        (Money(INT64_MAX + 1, "BRL"), AmountOverflow(AMOUNT_PATH)),
        (Money(1, "brl"), InvalidInput(("amount", "currency"), CURRENCY_RULE)),
    ],
)
def test_an_amount_is_positive_money(build: Build, amount: Money, refusal: Refusal) -> None:
    assert build(amount=amount) == refusal


@pytest.mark.parametrize(
    ("build", "field", "name", "limit"),
    [
        (build_place, "description", "description", 500),
        (build_capture, "description", "description", 500),
        (build_withdraw, "description", "description", 500),
        (build_withdraw, "external_reference", "externalReference", 128),
        (build_completed, "external_reference", "externalReference", 128),
        (build_failed, "external_reference", "externalReference", 128),
        (build_failed, "failure_reason", "failureReason", 500),
    ],
)
def test_a_text_has_a_limit_in_characters_and_can_be_stored(
    build: Build, field: str, name: str, limit: int
) -> None:
    assert build(**{field: "x" * (limit + 1)}) == InvalidInput(
        (name,), f"must have at most {limit} characters"
    )
    assert build(**{field: "a\0b"}) == InvalidInput(
        (name,), "must not contain U+0000 or lone surrogates"
    )
    for text in (None, "", "x" * limit):
        booked(build(**{field: text}))


@pytest.mark.parametrize("build", [build_place, build_withdraw])
def test_metadata_is_an_object(build: Build) -> None:
    assert build(metadata=[]) == InvalidInput(("metadata",), "must be a JSON object")


def test_an_expiry_can_be_written_in_every_zone() -> None:
    assert build_place(expires_at=datetime(9999, 1, 1, tzinfo=UTC)) == InvalidInput(
        ("expiresAt",), "must lie between the years 2 and 9998"
    )
    # Whether the time is over already is judged by the database's clock alone.
    for expires_at in (None, datetime(1970, 1, 1, tzinfo=UTC)):
        terms = booked(build_place(expires_at=expires_at)).terms
        assert isinstance(terms, PlaceHold)
        assert terms.expires_at == expires_at


@pytest.mark.parametrize("text", ["account closed", ""])
def test_only_a_failure_has_a_reason(text: str) -> None:
    assert build_completed(failure_reason=text) == InvalidInput(
        ("failureReason",), "must be left out unless the outcome is FAILED"
    )


@pytest.mark.parametrize(
    ("build", "field", "name"),
    [
        (build_place, "account_id", "accountId"),
        (build_withdraw, "account_id", "accountId"),
        (build_capture, "to_account_id", "toAccountId"),
        (build_completed, "clearing", "clearingAccountId"),
    ],
)
def test_an_id_that_names_nothing_is_an_account_that_is_not_there(
    build: Build, field: str, name: str
) -> None:
    assert build(**{field: None}) == AccountNotFound((name,))


@pytest.mark.parametrize(
    ("build", "field", "other_purpose", "refusal"),
    [
        (build_capture, "hold_id", PENDING, HoldNotFound(("holdId",))),
        (build_void, "hold_id", PENDING, HoldNotFound(("holdId",))),
        (build_completed, "withdrawal_id", HELD, WithdrawalNotFound(("withdrawalId",))),
        (build_failed, "withdrawal_id", HELD, WithdrawalNotFound(("withdrawalId",))),
    ],
)
def test_a_hold_and_a_withdrawal_are_found_by_their_own_commands_alone(
    build: Build, field: str, other_purpose: HeldMoney, refusal: Refusal
) -> None:
    assert build(None) == refusal
    assert build(**{field: None}) == refusal
    assert build(**{field: UUID(int=11)}) == refusal
    assert build(other_purpose) == refusal


def test_a_hold_is_not_captured_into_its_own_account() -> None:
    assert build_capture(to_account_id=WALLET) == SameAccount(("toAccountId",))


def test_a_capture_is_of_the_currency_of_the_hold() -> None:
    assert build_capture(amount=Money(60, "USD")) == CurrencyMismatch(
        ("amount", "currency"), account_currency="BRL", currency="USD"
    )


@pytest.mark.parametrize("minor_units", [101, INT64_MAX])
def test_a_capture_is_at_most_what_is_held(minor_units: int) -> None:
    assert build_capture(amount=Money(minor_units, "BRL")) == CaptureExceedsHold(
        AMOUNT_PATH, currency="BRL", held=100
    )


STEPS: list[tuple[Build, list[tuple[str, Any, tuple[str, ...]]]]] = [
    (
        build_place,
        [
            ("key", "", ("idempotencyKey",)),
            ("amount", Money(0, "BRL"), AMOUNT_PATH),
            ("expires_at", datetime(1, 1, 1, tzinfo=UTC), ("expiresAt",)),
            ("description", "x" * 501, ("description",)),
            ("metadata", [], ("metadata",)),
            ("account_id", None, ("accountId",)),
        ],
    ),
    (
        build_capture,
        [
            ("key", "", ("idempotencyKey",)),
            ("amount", Money(0, "BRL"), AMOUNT_PATH),
            ("description", "x" * 501, ("description",)),
            ("hold_id", None, ("holdId",)),
            ("to_account_id", None, ("toAccountId",)),
        ],
    ),
    (build_void, [("key", "", ("idempotencyKey",)), ("hold_id", None, ("holdId",))]),
    (
        build_withdraw,
        [
            ("key", "", ("idempotencyKey",)),
            ("amount", Money(0, "BRL"), AMOUNT_PATH),
            ("external_reference", "x" * 129, ("externalReference",)),
            ("description", "x" * 501, ("description",)),
            ("metadata", [], ("metadata",)),
            ("account_id", None, ("accountId",)),
        ],
    ),
    (
        build_completed,
        [
            ("key", "", ("idempotencyKey",)),
            ("external_reference", "x" * 129, ("externalReference",)),
            ("failure_reason", "closed", ("failureReason",)),
            ("withdrawal_id", None, ("withdrawalId",)),
            ("clearing", None, ("clearingAccountId",)),
        ],
    ),
]


@pytest.mark.parametrize(("build", "steps"), STEPS)
def test_the_first_wrong_field_is_the_one_that_is_told(
    build: Build, steps: list[tuple[str, Any, tuple[str, ...]]]
) -> None:
    """Everything is wrong at first; each field that is put right uncovers the next."""
    corrected: dict[str, Any] = {"failure_reason": None}
    wrong = {field: value for field, value, _ in steps}
    for field, _, path in steps:
        refusal = build(**wrong)
        assert isinstance(refusal, Refusal)
        assert refusal.path == path
        del wrong[field]
        if field in corrected:
            wrong[field] = corrected[field]
    booked(build(**wrong))


def test_what_a_capture_says_of_its_hold_is_judged_in_order() -> None:
    too_much = Money(101, "USD")

    assert build_capture(to_account_id=WALLET, amount=too_much) == SameAccount(("toAccountId",))
    assert isinstance(build_capture(amount=too_much), CurrencyMismatch)


@pytest.mark.parametrize(
    ("build", "changes"),
    [
        (
            build_place,
            {
                "account_id": UUID(int=3),
                "amount": Money(101, "BRL"),
                "expires_at": None,
                "description": None,
                "metadata": None,
            },
        ),
        (
            build_capture,
            {
                "to_account_id": UUID(int=3),
                "amount": None,
                "description": None,
            },
        ),
        (
            build_withdraw,
            {
                "account_id": UUID(int=3),
                "amount": Money(100, "USD"),
                "external_reference": None,
                "description": None,
                "metadata": None,
            },
        ),
        (build_completed, {"outcome": SettlementOutcome.FAILED, "external_reference": None}),
        (build_failed, {"failure_reason": None, "external_reference": "E002"}),
    ],
)
def test_every_field_but_the_key_is_part_of_the_fingerprint(
    build: Build, changes: dict[str, Any]
) -> None:
    original = booked(build())
    assert booked(build(key="another key")).fingerprint == original.fingerprint
    for field, value in changes.items():
        other = booked(build(**{field: value}))
        assert other.fingerprint.sha256 != original.fingerprint.sha256, field


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (build_capture, "hold_id"),
        (build_void, "hold_id"),
        (build_completed, "withdrawal_id"),
        (build_failed, "withdrawal_id"),
    ],
)
def test_another_hold_is_another_request(build: Build, field: str) -> None:
    other_id = UUID(int=11)
    purpose = HoldPurpose.HOLD if field == "hold_id" else HoldPurpose.WITHDRAWAL
    other = booked(build(replace(HELD, hold_id=other_id, purpose=purpose), **{field: other_id}))

    assert other.fingerprint.sha256 != booked(build()).fingerprint.sha256


def test_the_clearing_account_is_no_part_of_what_is_asked() -> None:
    assert (
        booked(build_completed(clearing=UUID(int=11))).fingerprint
        == booked(build_completed()).fingerprint
    )


ID_OF_WALLET, ID_OF_HOLD = (
    "00000000-0000-0000-0000-000000000001",
    "00000000-0000-0000-0000-00000000000a",
)


@pytest.mark.parametrize(
    ("build", "kept"),
    [
        pytest.param(
            build_place,
            Fingerprint(
                "placeHold",
                bytes.fromhex("fe0c9d528122cadf1cfa1e8c900d1962490156434cead03b78c67ccd62abac1f"),
                {
                    "accountId": ID_OF_WALLET,
                    "amount": "100 BRL",
                    "expiresAt": "2026-03-01T12:00:00+00:00",
                    "description": "deposit of a rented car",
                    "metadata": '{"rent":7}',
                },
            ),
            id="placeHold",
        ),
        pytest.param(
            build_capture,
            Fingerprint(
                "captureHold",
                bytes.fromhex("f664c2ec77b6144f8a1d9d4b55269b14a11297e4d0174a64fee7abe2367a7ef4"),
                {
                    "holdId": ID_OF_HOLD,
                    "toAccountId": "00000000-0000-0000-0000-000000000002",
                    "amount": "60 BRL",
                    "description": "petrol",
                },
            ),
            id="captureHold",
        ),
        pytest.param(
            build_void,
            Fingerprint(
                "voidHold",
                bytes.fromhex("52afb77347487348cc7dc2705eafddec54f998485a453f4425506a0c20192432"),
                {"holdId": ID_OF_HOLD},
            ),
            id="voidHold",
        ),
        pytest.param(
            lambda: expire_hold(HELD, TRANSACTION),
            Fingerprint(
                "expireHold",
                bytes.fromhex("901796063428f45a801f9250b1b7a597ec069b76f9e61942b3ec2ff1dc868886"),
                {"holdId": ID_OF_HOLD},
            ),
            id="expireHold",
        ),
        pytest.param(
            build_withdraw,
            Fingerprint(
                "withdraw",
                bytes.fromhex("0f01a18b0bbb6448d58800c811f7ac284a33e2a088e8dc8107cc0e3f1b2c9fca"),
                {
                    "accountId": ID_OF_WALLET,
                    "amount": "100 BRL",
                    "externalReference": "pix 1",
                    "description": "rent",
                    "metadata": '{"bank":"001"}',
                },
            ),
            id="withdraw",
        ),
        pytest.param(
            build_completed,
            Fingerprint(
                "settleWithdrawal",
                bytes.fromhex("82f6b19f1922b3ab7dc679f7fadc93225132008f9116955f970a6e284fe9a578"),
                {"withdrawalId": ID_OF_HOLD, "outcome": "COMPLETED", "externalReference": "E001"},
            ),
            id="settleWithdrawal",
        ),
    ],
)
def test_the_fingerprint_is_the_same_for_ever(build: Build, kept: Fingerprint) -> None:
    """Keys are kept for ever, so a release that computed another one would answer old requests with conflicts."""
    assert booked(build()).fingerprint == kept

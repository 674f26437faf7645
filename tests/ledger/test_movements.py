"""What a command says of itself: every rule of every field, and the request that a good command becomes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
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
)
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.deposits import DepositCommand, deposit
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.requests import PostingRequest
from app.ledger.rules import (
    DESCRIPTION_LIMIT,
    EXTERNAL_REFERENCE_LIMIT,
    METADATA_DEPTH_LIMIT,
    METADATA_LIMIT_BYTES,
)

SENDER, RECEIVER, TRANSACTION = UUID(int=1), UUID(int=2), UUID(int=9)

TRANSFER = TransferCommand(
    key="k",
    from_account_id=SENDER,
    to_account_id=RECEIVER,
    amount=Money(100, "BRL"),
    description="lunch",
    metadata={"order": 7},
)
DEPOSIT = DepositCommand(
    key="k",
    account_id=RECEIVER,
    clearing_account_id=SENDER,
    amount=Money(100, "BRL"),
    external_reference="statement 12",
    effective_at=datetime(2026, 1, 1, tzinfo=UTC),
    description="payment",
    metadata={"bank": "001"},
)

Build = Callable[..., PostingRequest | Refusal]


def build_transfer(**changes: Any) -> PostingRequest | Refusal:
    return transfer(replace(TRANSFER, **changes), "alice", TRANSACTION)


def build_deposit(**changes: Any) -> PostingRequest | Refusal:
    return deposit(replace(DEPOSIT, **changes), "operator", TRANSACTION)


both = pytest.mark.parametrize("build", [build_transfer, build_deposit])


def nested(depth: int) -> dict[str, Any]:
    """Nest an object so that its innermost value lies `depth` containers deep."""
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return {"a": value}


def test_a_transfer_debits_the_sender_who_must_own_it_and_credits_the_receiver() -> None:
    request = build_transfer()

    assert isinstance(request, PostingRequest)
    assert (request.id, request.type, request.caller, request.key) == (
        TRANSACTION,
        "transfer",
        "alice",
        "k",
    )
    assert [(leg.account_id, leg.amount) for leg in request.legs] == [
        (SENDER, Money(-100, "BRL")),
        (RECEIVER, Money(100, "BRL")),
    ]
    assert [(leg.owner, leg.credit_normal) for leg in request.legs] == [
        ("alice", True),
        (None, True),
    ]
    assert request.description == "lunch"
    assert request.metadata == {"order": 7}
    assert request.effective_at is None
    assert request.reverses_id is None


def test_a_deposit_debits_the_clearing_account_and_credits_the_receiver() -> None:
    request = build_deposit()

    assert isinstance(request, PostingRequest)
    assert (request.id, request.type, request.caller, request.key) == (
        TRANSACTION,
        "deposit",
        "operator",
        "k",
    )
    assert [(leg.account_id, leg.amount) for leg in request.legs] == [
        (SENDER, Money(-100, "BRL")),
        (RECEIVER, Money(100, "BRL")),
    ]
    assert request.external_reference == "statement 12"
    assert request.effective_at == DEPOSIT.effective_at


@both
@pytest.mark.parametrize(
    "key", ["", "k" * 129, "line\n", "k\n", "tab\t", "café", "\u0661", "\0", "\ud800", "\x7f"]
)
def test_a_key_is_1_to_128_printable_ascii_characters(build: Build, key: str) -> None:
    assert build(key=key) == InvalidInput(
        ("idempotencyKey",), "must be 1 to 128 printable ASCII characters"
    )


@both
@pytest.mark.parametrize("key", ["k", " ", "~" * 128, "6f1c2a9e-0000-4000-8000-000000000000"])
def test_every_printable_ascii_key_is_taken(build: Build, key: str) -> None:
    request = build(key=key)

    assert isinstance(request, PostingRequest)
    assert request.key == key


@both
@pytest.mark.parametrize("minor_units", [0, -1, -(2**63), -(2**70)])
def test_an_amount_is_positive(build: Build, minor_units: int) -> None:
    assert build(amount=Money(minor_units, "BRL")) == InvalidAmount(("amount", "minorUnits"))


@both
@pytest.mark.parametrize("minor_units", [INT64_MAX + 1, 2**70])
def test_an_amount_fits_64_bits(build: Build, minor_units: int) -> None:
    assert build(amount=Money(minor_units, "BRL")) == AmountOverflow(("amount", "minorUnits"))


@both
@pytest.mark.parametrize("minor_units", [1, 2**53 + 1, INT64_MAX])
def test_every_positive_64_bit_amount_is_taken_exactly(build: Build, minor_units: int) -> None:
    request = build(amount=Money(minor_units, "BRL"))

    assert isinstance(request, PostingRequest)
    assert [leg.amount.minor_units for leg in request.legs] == [-minor_units, minor_units]


@pytest.mark.parametrize(
    ("build", "field", "name", "limit"),
    [
        (build_transfer, "description", "description", DESCRIPTION_LIMIT),
        (build_deposit, "description", "description", DESCRIPTION_LIMIT),
        (build_deposit, "external_reference", "externalReference", EXTERNAL_REFERENCE_LIMIT),
    ],
)
def test_a_text_has_a_limit_in_characters_and_can_be_stored(
    build: Build, field: str, name: str, limit: int
) -> None:
    too_long = InvalidInput((name,), f"must have at most {limit} characters")
    not_storable = InvalidInput((name,), "must not contain U+0000 or lone surrogates")

    assert build(**{field: "x" * (limit + 1)}) == too_long
    assert build(**{field: "a\0b"}) == not_storable
    assert build(**{field: "a\ud800b"}) == not_storable
    # Four-byte characters count once, and control characters other than U+0000 are text.
    for text in (None, "", "\U0001f4b0" * limit, "\x01" * limit, "\u202e=1+1"):
        assert isinstance(build(**{field: text}), PostingRequest)


@both
@pytest.mark.parametrize(
    ("metadata", "rule"),
    [
        ([], "must be a JSON object"),
        ("{}", "must be a JSON object"),
        (1, "must be a JSON object"),
        (False, "must be a JSON object"),
        (
            {"a": 2**64},
            "must hold nothing but JSON values, numbers of at most 64 bits and valid text",
        ),
        (
            {"a": "\ud800"},
            "must hold nothing but JSON values, numbers of at most 64 bits and valid text",
        ),
        (
            {"\udfff": 1},
            "must hold nothing but JSON values, numbers of at most 64 bits and valid text",
        ),
        (
            {"a": object()},
            "must hold nothing but JSON values, numbers of at most 64 bits and valid text",
        ),
        (
            {1: "a"},
            "must hold nothing but JSON values, numbers of at most 64 bits and valid text",
        ),
        (
            {"a": "x" * (METADATA_LIMIT_BYTES - 7)},
            f"must have at most {METADATA_LIMIT_BYTES} bytes once encoded as JSON",
        ),
        (
            # A third as many characters: the limit is in bytes.
            {"a": "\u20ac" * (METADATA_LIMIT_BYTES // 3)},
            f"must have at most {METADATA_LIMIT_BYTES} bytes once encoded as JSON",
        ),
        (
            nested(METADATA_DEPTH_LIMIT + 1),
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        ),
        (
            {"a": "x\0"},
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        ),
        (
            {"a": [{"b\0": 1}]},
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        ),
        (
            {"a": float("inf")},
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        ),
        (
            {"a": [float("nan")]},
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        ),
    ],
)
def test_metadata_is_an_object_that_can_be_stored(build: Build, metadata: Any, rule: str) -> None:
    assert build(metadata=metadata) == InvalidInput(("metadata",), rule)


@both
def test_endless_nesting_is_refused_and_not_followed(build: Build) -> None:
    refusal = build(metadata=nested(100_000))

    assert isinstance(refusal, InvalidInput)
    assert refusal.path == ("metadata",)


STORABLE: list[Any] = [
    None,
    {},
    {"": None, "a": [True, False, None, 0, -1, 1.5, "", {}]},
    {"a": 2**63 - 1, "b": -(2**63)},
    {"a": 2**64 - 1},
    {"a": 1e20, "b": -1e300, "c": 5e-324, "d": -0.0},
    {"a": "x" * (METADATA_LIMIT_BYTES - 8)},
    nested(METADATA_DEPTH_LIMIT),
]


@both
@pytest.mark.parametrize("metadata", STORABLE)
def test_every_other_object_is_taken_as_it_is(build: Build, metadata: Any) -> None:
    request = build(metadata=metadata)

    assert isinstance(request, PostingRequest)
    assert request.metadata == metadata


@pytest.mark.parametrize(
    ("instant", "taken"),
    [
        (None, True),
        (datetime(1, 12, 31, 23, 59, tzinfo=UTC), False),
        (datetime(2, 1, 1, tzinfo=UTC), True),
        (datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), True),
        (datetime(9999, 1, 1, tzinfo=UTC), False),
        # Judged in UTC, whatever the zone says.
        (datetime(2, 1, 1, tzinfo=timezone(timedelta(hours=14))), False),
        (datetime(9998, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))), False),
        (datetime(1970, 1, 1, tzinfo=UTC), True),
    ],
)
def test_an_effective_time_can_be_written_in_every_zone(
    instant: datetime | None, *, taken: bool
) -> None:
    built = build_deposit(effective_at=instant)

    if taken:
        assert isinstance(built, PostingRequest)
        assert built.effective_at == instant
    else:
        assert built == InvalidInput(("effectiveAt",), "must lie between the years 2 and 9998")


@pytest.mark.parametrize(
    "instant",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_an_effective_time_outside_the_calendar_is_refused(instant: datetime) -> None:
    """In UTC these two instants lie in the years 10000 and 0, which Python can't say."""
    assert build_deposit(effective_at=instant) == InvalidInput(
        ("effectiveAt",), "must lie between the years 2 and 9998"
    )


@pytest.mark.parametrize(
    ("build", "field", "name"),
    [
        (build_transfer, "from_account_id", "fromAccountId"),
        (build_transfer, "to_account_id", "toAccountId"),
        (build_deposit, "account_id", "accountId"),
        (build_deposit, "clearing_account_id", "clearingAccountId"),
    ],
)
def test_an_id_that_names_nothing_is_an_account_that_is_not_there(
    build: Build, field: str, name: str
) -> None:
    assert build(**{field: None}) == AccountNotFound((name,))


def test_both_sides_are_different_accounts() -> None:
    assert build_transfer(to_account_id=SENDER) == SameAccount(("toAccountId",))
    assert build_deposit(account_id=SENDER) == SameAccount(("clearingAccountId",))


STEPS: list[tuple[Build, list[tuple[str, Any, RefusalCode]]]] = [
    (
        build_transfer,
        [
            ("key", "", RefusalCode.INVALID_INPUT),
            ("amount", Money(0, "BRL"), RefusalCode.INVALID_AMOUNT),
            ("description", "x" * 501, RefusalCode.INVALID_INPUT),
            ("metadata", [], RefusalCode.INVALID_INPUT),
            ("from_account_id", None, RefusalCode.ACCOUNT_NOT_FOUND),
            ("to_account_id", None, RefusalCode.ACCOUNT_NOT_FOUND),
        ],
    ),
    (
        build_deposit,
        [
            ("key", "", RefusalCode.INVALID_INPUT),
            ("amount", Money(0, "BRL"), RefusalCode.INVALID_AMOUNT),
            ("external_reference", "x" * 129, RefusalCode.INVALID_INPUT),
            ("effective_at", datetime(1, 1, 1, tzinfo=UTC), RefusalCode.INVALID_INPUT),
            ("description", "x" * 501, RefusalCode.INVALID_INPUT),
            ("metadata", [], RefusalCode.INVALID_INPUT),
            ("account_id", None, RefusalCode.ACCOUNT_NOT_FOUND),
            ("clearing_account_id", None, RefusalCode.ACCOUNT_NOT_FOUND),
        ],
    ),
]


@pytest.mark.parametrize(("build", "steps"), STEPS)
def test_the_first_wrong_field_is_the_one_that_is_told(
    build: Build, steps: list[tuple[str, Any, RefusalCode]]
) -> None:
    """Everything is wrong at first; each field that is put right uncovers the next."""
    wrong = {field: value for field, value, _ in steps}
    paths: list[tuple[str, ...]] = []
    for field, _, code in steps:
        refusal = build(**wrong)
        assert isinstance(refusal, Refusal)
        assert refusal.code is code
        paths.append(refusal.path)
        del wrong[field]
    assert isinstance(build(**wrong), PostingRequest)
    assert len(set(paths)) == len(steps)


@pytest.mark.parametrize(
    ("build", "changes"),
    [
        (
            build_transfer,
            {
                "from_account_id": UUID(int=3),
                "to_account_id": UUID(int=3),
                "amount": Money(101, "BRL"),
                "description": None,
                "metadata": None,
            },
        ),
        (
            build_deposit,
            {
                "account_id": UUID(int=3),
                "clearing_account_id": UUID(int=3),
                "amount": Money(100, "USD"),
                "external_reference": None,
                "effective_at": None,
                "description": "",
                "metadata": {},
            },
        ),
    ],
)
def test_every_field_but_the_key_is_part_of_the_fingerprint(
    build: Build, changes: dict[str, Any]
) -> None:
    original = build()
    same = build(key="another key")
    assert isinstance(original, PostingRequest)
    assert isinstance(same, PostingRequest)
    assert same.fingerprint == original.fingerprint
    for field, value in changes.items():
        other = build(**{field: value})
        assert isinstance(other, PostingRequest)
        assert other.fingerprint.sha256 != original.fingerprint.sha256, field

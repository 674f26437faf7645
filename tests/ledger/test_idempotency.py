"""What makes two requests the same: their meaning, not their spelling; and what a conflict says."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.errors import IdempotencyConflict, RefusalCode
from app.ledger.idempotency import OPERATION, Fingerprint, KnownKey, conflict_with, fingerprint
from app.ledger.money import Money

ONE, OTHER = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

FIELDS: Mapping[str, Any] = {
    "fromAccountId": ONE,
    "toAccountId": OTHER,
    "amount": Money(100, "BRL"),
    "description": "lunch",
    "metadata": {"order": "7", "lines": [1, 2.5, {"sku": "a"}]},
    "effectiveAt": NOON,
}

TRANSACTION = UUID(int=77)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def conflict(before: Fingerprint, now: Fingerprint) -> IdempotencyConflict | None:
    return conflict_with(KnownKey(before, TRANSACTION, None), now)


def changed(**fields: Any) -> Fingerprint:
    return fingerprint("transfer", {**FIELDS, **fields})


def reordered(value: Any) -> Any:
    """Turn the order of all members round, and write whole numbers as floats."""
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            return {name: reordered(member) for name, member in reversed(members.items())}
        case list():
            return [reordered(item) for item in cast("list[Any]", value)]
        case bool():
            return value
        case int():
            return float(value)
        case _:
            return value


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(dict(reversed(FIELDS.items())), id="reordered fields"),
        pytest.param({**FIELDS, "externalReference": None}, id="null and left out"),
        pytest.param(
            {**FIELDS, "metadata": {"lines": [1, 2.5, {"sku": "a"}], "order": "7"}},
            id="reordered metadata keys",
        ),
        pytest.param(
            {**FIELDS, "metadata": {"order": "7", "lines": [1.0, 2.5, {"sku": "a"}]}},
            id="1 and 1.0",
        ),
        pytest.param(
            {**FIELDS, "effectiveAt": NOON.astimezone(timezone(timedelta(hours=-3)))},
            id="one instant in two zones",
        ),
        pytest.param(
            {**FIELDS, "fromAccountId": UUID(str(ONE).upper())}, id="upper-case letters of an id"
        ),
    ],
)
def test_another_spelling_is_the_same_request(same: Mapping[str, Any]) -> None:
    asked = fingerprint("transfer", same)

    assert asked == fingerprint("transfer", FIELDS)
    assert conflict(fingerprint("transfer", FIELDS), asked) is None


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4), json_values, max_size=5
    )
)
def test_the_order_of_metadata_and_the_spelling_of_whole_numbers_never_matter(
    metadata: dict[str, Any],
) -> None:
    assert changed(metadata=metadata) == changed(metadata=reordered(metadata))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fromAccountId", UUID(int=3)),
        ("toAccountId", UUID(int=3)),
        ("amount", Money(101, "BRL")),
        ("amount", Money(-100, "BRL")),
        ("amount", Money(100, "USD")),
        ("description", "Lunch"),
        ("description", "lunch "),
        ("description", ""),
        ("description", None),
        ("metadata", None),
        ("metadata", {}),
        ("metadata", {"order": 7, "lines": [1, 2.5, {"sku": "a"}]}),
        ("metadata", {"order": "7", "lines": [2.5, 1, {"sku": "a"}]}),
        ("metadata", {"order": "7", "lines": [1, 2.5, {"sku": "a"}], "more": None}),
        ("metadata", {"order": "7", "lines": [True, 2.5, {"sku": "a"}]}),
        ("effectiveAt", NOON + timedelta(microseconds=1)),
        ("effectiveAt", None),
        ("externalReference", "late"),
    ],
)
def test_a_conflict_names_the_field_that_differs(field: str, value: object) -> None:
    assert conflict(changed(), changed(**{field: value})) == IdempotencyConflict(
        path=("idempotencyKey",), transaction_id=TRANSACTION, differing_fields=(field,)
    )


def test_a_conflict_names_every_field_that_differs_in_order() -> None:
    refusal = conflict(
        changed(), changed(toAccountId=ONE, amount=Money(1, "BRL"), description=None, note="new")
    )

    assert refusal is not None
    assert refusal.code is RefusalCode.IDEMPOTENCY_CONFLICT
    assert not refusal.retryable
    assert refusal.differing_fields == ("amount", "description", "note", "toAccountId")


def test_another_operation_is_another_request_even_with_equal_fields() -> None:
    refusal = conflict(fingerprint("transfer", FIELDS), fingerprint("deposit", FIELDS))

    assert refusal is not None
    assert refusal.differing_fields == (OPERATION,)


def test_a_key_that_stands_for_an_account_names_no_transaction() -> None:
    known = KnownKey(fingerprint("openAccount", {"currency": "BRL"}), None, ONE)
    refusal = conflict_with(known, changed())

    assert refusal is not None
    assert refusal.transaction_id is None
    assert refusal.differing_fields == (OPERATION,)


def test_what_stands_in_one_field_is_not_what_stands_in_another() -> None:
    """The parts of the fingerprint can't run into each other."""
    one = fingerprint("transfer", {"description": "a", "externalReference": "bc"})
    other = fingerprint("transfer", {"description": "ab", "externalReference": "c"})
    swapped = fingerprint("transfer", {"description": "bc", "externalReference": "a"})

    assert len({one.sha256, other.sha256, swapped.sha256}) == 3


GOLDEN_SHA256 = "5027bd70fb72e48be9ff0eda0f4739af738e05470d2bb7e0da43713a9eadee32"

GOLDEN_FIELDS = {
    "fromAccountId": "00000000-0000-0000-0000-000000000001",
    "toAccountId": "00000000-0000-0000-0000-000000000002",
    "amount": "100 BRL",
    "description": "lunch",
    "metadata": "sha256:55228c20b4a08c4870e5d2e6f06f060c32abd3f56e1b7110b795e7a288836180",
    "effectiveAt": "2026-03-01T12:00:00+00:00",
}


def test_the_fingerprint_is_the_same_for_ever() -> None:
    """Keys are kept for ever, so a release that computed another one would answer old requests with conflicts."""
    kept = changed()

    assert kept.operation == "transfer"
    assert kept.sha256.hex() == GOLDEN_SHA256
    assert dict(kept.fields) == GOLDEN_FIELDS

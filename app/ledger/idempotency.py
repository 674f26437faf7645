"""What makes two requests the same request, decided by meaning and not by spelling.

A request is reduced to a canonical form: fields that are null are left out, metadata keys are sorted, whole numbers
are written one way, instants are UTC. Its SHA-256 is the fingerprint that is kept with the key for ever. The fields are
kept beside it, long ones as their own SHA-256, so that a conflict can name those that differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, cast
from uuid import UUID

import orjson

from app.ledger.errors import IdempotencyConflict
from app.ledger.model import JsonValue
from app.ledger.money import Money

OPERATION: Final = "operation"
"""The name under which a conflict reports that the key was used for another kind of request."""

_LONGEST_KEPT: Final = 40
"""A longer value is kept as its digest, which is longer than this itself, so that the two can't be confused."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The identity of a request: its operation, the SHA-256 of its canonical form, and that form field by field."""

    operation: str
    sha256: bytes
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that is already booked, with what it stands for: a transaction or an account."""

    fingerprint: Fingerprint
    transaction_id: UUID | None
    account_id: UUID | None


def fingerprint(operation: str, fields: Mapping[str, Any]) -> Fingerprint:
    """Reduce a request to its fingerprint; the fields bear the names of the API and exclude the key itself."""
    canonical = {name: _canonical(value) for name, value in fields.items() if value is not None}
    whole = orjson.dumps([operation, canonical], option=orjson.OPT_SORT_KEYS)
    return Fingerprint(operation, sha256(whole).digest(), canonical)


def conflict_with(known: KnownKey, asked: Fingerprint) -> IdempotencyConflict | None:
    """Compare a request with what its key stands for; None means that it is the same request."""
    if known.fingerprint.sha256 == asked.sha256:
        return None
    if known.fingerprint.operation != asked.operation:
        differing: tuple[str, ...] = (OPERATION,)
    else:
        before, now = known.fingerprint.fields, asked.fields
        differing = tuple(
            sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        )
    return IdempotencyConflict(
        path=("idempotencyKey",), transaction_id=known.transaction_id, differing_fields=differing
    )


def _canonical(value: object) -> str:
    match value:
        case UUID():
            return str(value)
        case Money():
            return f"{value.minor_units} {value.currency}"
        case str():
            text = value
        case datetime():
            text = value.astimezone(UTC).isoformat()
        case _:
            text = orjson.dumps(
                _plain(cast("JsonValue", value)), option=orjson.OPT_SORT_KEYS
            ).decode()
    return text if len(text) <= _LONGEST_KEPT else "sha256:" + sha256(text.encode()).hexdigest()


def _plain(value: JsonValue) -> JsonValue:
    """Write 1.0 as 1 at any depth: JSON has one kind of number, of which 64 bits can be written as an integer."""
    match value:
        case float() if value.is_integer() and -(2**63) <= value < 2**64:
            return int(value)
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list():
            return [_plain(member) for member in value]
        case _:
            return value

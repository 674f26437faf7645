"""Filters by the type of a transaction."""

from collections.abc import Sequence

from app.ledger.rules import storable
from app.schema.described import given
from app.schema.errors import bad_request


def wanted_types(types: Sequence[str] | None) -> tuple[str, ...] | None:
    """Read the types of transactions that are wanted; raises BAD_REQUEST for one that no transaction can have."""
    types = given(types)
    if types is None:
        return None
    if not all(storable(name) for name in types):
        raise bad_request("A transaction's type has neither U+0000 nor lone surrogates.")
    return tuple(types)

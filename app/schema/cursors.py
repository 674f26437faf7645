"""Opaque cursors: a place in a list that belongs to somebody, with a checksum that binds the two together.

A cursor of another account's history, of another person's accounts, or one with a bit flipped is refused and never
taken for a place. An entry's cursor is the same in every view of the history: newest first, oldest first, filtered or
live, so that one can read a page and subscribe to what comes after its newest line.
"""

import base64
import binascii
from hashlib import blake2b
from typing import Final
from uuid import UUID

from app.ledger.model import HoldPurpose
from app.ledger.money import INT64_MAX
from app.schema.errors import invalid_cursor

_VERSION: Final = b"\x01"
_CHECKSUM_BYTES: Final = 8
_LENGTH_MAX: Final = 64
_SEQUENCE_BYTES: Final = 8
_UUID_BYTES: Final = 16


def entry_cursor(account_id: UUID, sequence: int) -> str:
    """Write the cursor of the entry with this number in the account's history."""
    return _encode(b"entry" + account_id.bytes, sequence.to_bytes(_SEQUENCE_BYTES))


def read_entry_cursor(account_id: UUID, cursor: str) -> int:
    """Read the number of an entry; raises INVALID_CURSOR unless the cursor is one of this account."""
    sequence = int.from_bytes(_decode(b"entry" + account_id.bytes, cursor, _SEQUENCE_BYTES))
    if sequence > INT64_MAX:
        raise invalid_cursor()
    return sequence


def account_cursor(owner: str | None, account_id: UUID) -> str:
    """Write the cursor of an account in its owner's list, or in that of all accounts where the owner is None."""
    return _encode(_accounts_of(owner), account_id.bytes)


def read_account_cursor(owner: str | None, cursor: str) -> UUID:
    """Read the id of an account; raises INVALID_CURSOR unless the cursor is one of this list."""
    return _decode_id(_accounts_of(owner), cursor)


def hold_cursor(purpose: HoldPurpose, account_id: UUID | None, hold_id: UUID) -> str:
    """Write the cursor of a hold in its account's list, or in that of everybody where the account is None."""
    return _encode(_holds_of(purpose, account_id), hold_id.bytes)


def read_hold_cursor(purpose: HoldPurpose, account_id: UUID | None, cursor: str) -> UUID:
    """Read the id of a hold; raises INVALID_CURSOR unless the cursor is one of this list."""
    return _decode_id(_holds_of(purpose, account_id), cursor)


def transaction_cursor(transaction_id: UUID) -> str:
    """Write the cursor of a transaction in the list of all transactions."""
    return _encode(b"transaction", transaction_id.bytes)


def read_transaction_cursor(cursor: str) -> UUID:
    """Read the id of a transaction; raises INVALID_CURSOR unless the cursor is one of that list."""
    return _decode_id(b"transaction", cursor)


def _accounts_of(owner: str | None) -> bytes:
    return b"every account" if owner is None else b"account" + owner.encode()


def _holds_of(purpose: HoldPurpose, account_id: UUID | None) -> bytes:
    name = purpose.lower().encode()
    return b"every " + name if account_id is None else name + account_id.bytes


def _decode_id(belongs_to: bytes, cursor: str) -> UUID:
    return UUID(bytes=_decode(belongs_to, cursor, _UUID_BYTES))


def _encode(belongs_to: bytes, place: bytes) -> str:
    return (
        base64.urlsafe_b64encode(_VERSION + place + _checksum(belongs_to, place))
        .rstrip(b"=")
        .decode()
    )


def _decode(belongs_to: bytes, cursor: str, place_bytes: int) -> bytes:
    if not cursor.isascii() or not 0 < len(cursor) <= _LENGTH_MAX:
        raise invalid_cursor()
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except binascii.Error:
        raise invalid_cursor() from None
    place = raw[1 : 1 + place_bytes]
    # Comparing the whole text leaves one spelling only, whatever the decoder has passed over.
    if len(place) != place_bytes or _encode(belongs_to, place) != cursor:
        raise invalid_cursor()
    return place


def _checksum(belongs_to: bytes, place: bytes) -> bytes:
    return blake2b(belongs_to + place, digest_size=_CHECKSUM_BYTES).digest()

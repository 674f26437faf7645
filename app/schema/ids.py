"""Opaque ids of the objects that a client may ask for again: base64url of the type's name and the object's key.

Each object has one spelling only: whatever isn't exactly what `encode` writes names nothing. So two texts that differ
never name one account, and a cache that is keyed by id never holds an object twice.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from app.ledger.money import fits_int64
from app.schema.errors import bad_request

ID_LIMIT: Final = 256
"""Longest text that is looked at, in characters."""

_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_WHOLE_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AccountId:
    """Names an account."""

    account_id: UUID


@dataclass(frozen=True, slots=True)
class TransactionId:
    """Names a transaction."""

    transaction_id: UUID


@dataclass(frozen=True, slots=True)
class EntryId:
    """Names an entry by its account and its place there."""

    account_id: UUID
    sequence: int


@dataclass(frozen=True, slots=True)
class HoldId:
    """Names a hold."""

    hold_id: UUID


@dataclass(frozen=True, slots=True)
class WithdrawalId:
    """Names a withdrawal."""

    withdrawal_id: UUID


NodeId: TypeAlias = AccountId | TransactionId | EntryId | HoldId | WithdrawalId


_NAMED_BY_UUID: Final[Mapping[str, Callable[[UUID], NodeId]]] = {
    "Account": AccountId,
    "Transaction": TransactionId,
    "Hold": HoldId,
    "Withdrawal": WithdrawalId,
}


def encode_account_id(key: UUID) -> str:
    """Write the id of an account."""
    return _encode(AccountId(key))


def encode_transaction_id(key: UUID) -> str:
    """Write the id of a transaction."""
    return _encode(TransactionId(key))


def encode_entry_id(account_key: UUID, sequence: int) -> str:
    """Write the id of an entry."""
    return _encode(EntryId(account_key, sequence))


def encode_hold_id(key: UUID) -> str:
    """Write the id of a hold."""
    return _encode(HoldId(key))


def encode_withdrawal_id(key: UUID) -> str:
    """Write the id of a withdrawal."""
    return _encode(WithdrawalId(key))


def decode_id(text: str) -> NodeId | None:
    """Read an id; None where it names nothing. Raises BAD_REQUEST for a text that can't be an id of any server."""
    if len(text) > ID_LIMIT or not (text.isascii() and text.isprintable()):
        raise bad_request(f"An ID has at most {ID_LIMIT} characters, all of them printable ASCII.")
    if not _BASE64URL.fullmatch(text):
        return None
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    node = _read(plain)
    return node if node is not None and _encode(node) == text else None


def decode_account_id(text: str) -> UUID | None:
    """Read the id of an account; None where it names nothing or something else."""
    node = decode_id(text)
    return node.account_id if isinstance(node, AccountId) else None


def decode_transaction_id(text: str) -> UUID | None:
    """Read the id of a transaction; None where it names nothing or something else."""
    node = decode_id(text)
    return node.transaction_id if isinstance(node, TransactionId) else None


def decode_hold_id(text: str) -> UUID | None:
    """Read the id of a hold; None where it names nothing or something else."""
    node = decode_id(text)
    return node.hold_id if isinstance(node, HoldId) else None


def decode_withdrawal_id(text: str) -> UUID | None:
    """Read the id of a withdrawal; None where it names nothing or something else."""
    node = decode_id(text)
    return node.withdrawal_id if isinstance(node, WithdrawalId) else None


def _encode(node: NodeId) -> str:
    return base64.urlsafe_b64encode(_write(node).encode()).rstrip(b"=").decode()


def _write(node: NodeId) -> str:
    match node:
        case AccountId(key):
            return f"Account:{key}"
        case TransactionId(key):
            return f"Transaction:{key}"
        case EntryId(key, sequence):
            return f"Entry:{key}:{sequence}"
        case HoldId(key):
            return f"Hold:{key}"
        case WithdrawalId(key):
            return f"Withdrawal:{key}"


def _read(plain: str) -> NodeId | None:
    name, _, rest = plain.partition(":")
    key, _, number = rest.partition(":")
    try:
        uuid = UUID(key)
    except ValueError:
        return None
    if name == "Entry" and _WHOLE_NUMBER.fullmatch(number) and fits_int64(int(number)):
        return EntryId(uuid, int(number))
    named = _NAMED_BY_UUID.get(name)
    return None if named is None else named(uuid)

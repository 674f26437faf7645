"""What a batch finds under its locks: the state that its decision starts from, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from app.ledger.idempotency import KnownKey
from app.ledger.model import Account, Hold

CallerKey: TypeAlias = tuple[str, str]
"""An idempotency key with the caller in whose scope it is unique."""


@dataclass(frozen=True, slots=True)
class LockedAccount:
    """An account's row under this batch's lock, with the state that the next entry goes on from."""

    account: Account
    balance: int
    """Signed, credit positive, minor units."""
    sequence: int
    posted_at: datetime | None
    """When its last entry was posted."""
    stripe: int | None = None
    """Its number, where it is a stripe."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """How often a transaction has been reversed or refunded, and how much of it, minor units."""

    times: int
    amount: int
    reversed: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """The locked rows, and what was read of keys, holds and reversals after they were locked."""

    now: datetime
    """The database's clock, read after the locks; UTC."""
    rows: Mapping[UUID, LockedAccount]
    """By id; a derived account's row is among them, though it is kept from nothing but a change of its status."""
    known_keys: Mapping[CallerKey, KnownKey]
    striped: Mapping[UUID, Account] = field(default_factory=dict[UUID, Account])
    """The striped accounts whose children are among the rows, as they were when they were opened."""
    holds: Mapping[UUID, Hold] = field(default_factory=dict[UUID, Hold])
    taken_back: Mapping[UUID, TakenBack] = field(default_factory=dict[UUID, TakenBack])
    """Of the transactions that were reversed or refunded before; others are missing."""
    stamp_base: int = 0
    """From which this batch's stamps are made; 0 where it touches no hot account."""

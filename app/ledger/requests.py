"""What the engine is asked to book, as values: legs, the key they are booked under, and what must be true."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.ledger.errors import Path
from app.ledger.idempotency import Fingerprint
from app.ledger.model import Json
from app.ledger.money import Money


@dataclass(frozen=True, slots=True)
class RequestedLeg:
    """One side of a posting as it is asked for, with what must be true of its account."""

    account_id: UUID
    amount: Money
    """Signed, credit positive."""
    account_path: Path
    amount_path: Path
    owner: str | None = None
    """Where set, an account of anybody else is answered as one that doesn't exist."""
    credit_normal: bool = False
    """Where true, an account that a credit would lower is answered as one that doesn't exist."""


@dataclass(frozen=True, slots=True)
class PostingRequest:
    """What the engine books: legs that sum to zero per currency, under a key of its caller's."""

    id: UUID
    """UUIDv7, made by whoever builds the request; becomes the transaction's id."""
    type: str
    caller: str
    key: str
    fingerprint: Fingerprint
    legs: tuple[RequestedLeg, ...]
    description: str | None = None
    external_reference: str | None = None
    metadata: Json | None = None
    effective_at: datetime | None = None
    """When the fact happened; the posting time where None."""
    reverses_id: UUID | None = None

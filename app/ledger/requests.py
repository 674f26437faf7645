"""What the engine is asked to book, as values: legs, the key they are booked under, and what must be true.

A leg names a main account. Which rows it moves (the account's own, its held child, one or several of its stripes) is
found by `routing`, under the locks.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from app.ledger.errors import Path
from app.ledger.idempotency import Fingerprint
from app.ledger.model import AccountPurpose, HoldPurpose, HoldStatus, Json
from app.ledger.money import Money

LEDGER_CALLER = ""
"""Who asks for what the ledger does by itself, such as letting holds expire; no token can bear an empty subject."""


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
    purpose: AccountPurpose = AccountPurpose.MAIN
    """MAIN for what the account has available, HELD for what it has set aside."""
    if_sequence: int | None = None
    """Where set, the account must stand at this sequence before the posting."""
    releases: bool = False
    """Whether this gives back what was set aside, which a frozen account may have too."""
    stripes: tuple[tuple[UUID, int], ...] = ()
    """Where money goes back to a striped account: the stripes that it came from, and how much each gave, unsigned."""


@dataclass(frozen=True, slots=True)
class PlaceHold:
    """The posting sets money aside: a hold begins with it."""

    hold_id: UUID
    account_id: UUID
    purpose: HoldPurpose
    amount: int
    """Positive, minor units."""
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class CloseHold:
    """The posting ends a hold; refused unless it is open, and in time where that is asked for."""

    hold_id: UUID
    purpose: HoldPurpose
    path: Path
    status: HoldStatus
    """What becomes of the hold: CAPTURED, VOIDED or EXPIRED, which is refused before its time."""
    captured: int
    """How much goes on to somebody else; 0 where all is released."""
    external_reference: str | None = None
    """The bank's name for the withdrawal, where the settlement gave one."""
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The posting reverses or refunds an earlier one; refused where too little of that is left."""

    original_id: UUID
    original_amount: int
    """What the original moved, as one number to compare refunds with: the sum of its credits, minor units."""
    amount: int
    """What is taken back of that now."""
    whole: bool
    """Whether this is the reversal, of which there is one and never beside refunds."""
    currency: str
    path: Path
    amount_path: Path


@dataclass(frozen=True, slots=True)
class Gather:
    """The posting moves all that a striped account has into its first stripe; its legs are found under the locks."""

    account_id: UUID
    path: Path


Terms: TypeAlias = PlaceHold | CloseHold | TakeBack | Gather
"""What a posting does beside moving money, or what must be true for it."""


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
    terms: Terms | None = None
    description: str | None = None
    external_reference: str | None = None
    metadata: Json | None = None
    effective_at: datetime | None = None
    """When the fact happened; the posting time where None."""

    @property
    def hold_id(self) -> UUID | None:
        """The hold that this posting places or ends."""
        return self.terms.hold_id if isinstance(self.terms, PlaceHold | CloseHold) else None

    @property
    def reverses_id(self) -> UUID | None:
        """The transaction that this one reverses or refunds."""
        return self.terms.original_id if isinstance(self.terms, TakeBack) else None

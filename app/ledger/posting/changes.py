"""What a batch changes as its decision goes on: the lines it books and everything that differs from the database."""

from dataclasses import dataclass, field
from uuid import UUID

from app.ledger.model import Account, AccountPurpose, BalanceTracking, Entry, Hold, Transaction
from app.ledger.posting.standing import CallerKey, LockedAccount, TakenBack
from app.ledger.requests import PostingRequest


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it is written: on the row that moves, which people know by its main account."""

    row: Account
    main: Account
    """The row's own account, or its parent where it is a child."""
    sequence: int
    amount: int
    """Signed, credit positive, minor units."""
    balance_after: int | None
    """Of the row; None where that keeps no balance."""

    @property
    def reached(self) -> int:
        """The sequence that readers of the main account can go by; 0 where the line has none of theirs."""
        tracked = self.row.tracking is BalanceTracking.TRACKED
        return self.sequence if tracked and self.row.purpose is AccountPurpose.MAIN else 0

    def entry_of(self, transaction: Transaction) -> Entry:
        """Show the line as an entry of the account that people know."""
        striped = self.row.purpose is AccountPurpose.STRIPE
        return Entry(
            account=self.main if striped else self.row,
            transaction_id=transaction.id,
            sequence=self.sequence,
            amount=self.amount,
            balance_after=None if striped else self.balance_after,
            posted_at=transaction.posted_at,
        )


@dataclass(frozen=True, slots=True)
class Posted:
    """The request was booked, now or by an earlier request with the same key."""

    transaction: Transaction
    entries: tuple[Entry, ...]
    replayed: bool = False
    hold: Hold | None = None
    """The hold that the posting placed or ended, as it is now."""


@dataclass(frozen=True, slots=True)
class Booking:
    """A request together with the rows that it becomes."""

    request: PostingRequest
    posted: Posted
    lines: list[Line]
    reversal_number: int | None
    """How many times the original has been reversed or refunded, this time included."""


@dataclass(slots=True)
class Changes:
    """What differs from the database so far."""

    bookings: list[Booking] = field(default_factory=list[Booking])
    moved: dict[UUID, tuple[int, int]] = field(default_factory=dict[UUID, tuple[int, int]])
    """Balance and sequence of each row that moved."""
    opened: dict[UUID, LockedAccount] = field(default_factory=dict[UUID, LockedAccount])
    """Held children that don't exist yet."""
    numbers: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """How many entries of this batch each hot account has."""
    booked_keys: dict[CallerKey, Booking] = field(default_factory=dict[CallerKey, Booking])
    placed: dict[UUID, Hold] = field(default_factory=dict[UUID, Hold])
    closed: dict[UUID, Hold] = field(default_factory=dict[UUID, Hold])
    taken_back: dict[UUID, TakenBack] = field(default_factory=dict[UUID, TakenBack])

    def copy(self) -> "Changes":
        """Keep what has been changed so far, to come back to it."""
        return Changes(
            list(self.bookings),
            dict(self.moved),
            dict(self.opened),
            dict(self.numbers),
            dict(self.booked_keys),
            dict(self.placed),
            dict(self.closed),
            dict(self.taken_back),
        )

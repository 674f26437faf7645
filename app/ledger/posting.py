"""The decision: requests and the locked state go in, rows to write and refusals come out, all in memory.

Shape. Requests come in groups, each of which is booked wholly or not at all; a single request is a group of one. They
are decided in the order of their arrival, each seeing what the ones before it have done. A request that is refused
leaves no trace, so its neighbours are decided as if it had never come.

Cost. A few dictionary look-ups for each leg; no clock, no network, no database.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from app.ledger.errors import (
    AccountClosed,
    AccountFrozen,
    AccountNotFound,
    AmountOverflow,
    CurrencyMismatch,
    InsufficientFunds,
    Refusal,
)
from app.ledger.idempotency import KnownKey, conflict_with
from app.ledger.model import Account, AccountPurpose, AccountStatus, Entry, Leg, Transaction
from app.ledger.money import fits_int64
from app.ledger.requests import PostingRequest, RequestedLeg

PostingGroup: TypeAlias = tuple[PostingRequest, ...]
"""Requests that are booked together or not at all."""

CallerKey: TypeAlias = tuple[str, str]
"""An idempotency key with the caller in whose scope it is unique."""


@dataclass(frozen=True, slots=True)
class LockedAccount:
    """An account under this batch's lock, with the state that the next entry goes on from."""

    account: Account
    balance: int
    """Signed, credit positive, minor units."""
    sequence: int
    posted_at: datetime | None
    """When its last entry was posted."""


@dataclass(frozen=True, slots=True)
class Posted:
    """The request was booked, now or by an earlier request with the same key."""

    transaction: Transaction
    entries: tuple[Entry, ...]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """The request was booked before this batch; what it answered then is read by its id."""

    known: KnownKey


@dataclass(frozen=True, slots=True)
class Refused:
    """The request changed nothing and its key stays free."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class NotAttempted:
    """Nothing was wrong with the request; another member of its group was refused."""


Outcome: TypeAlias = Posted | Replay | Refused | NotAttempted


@dataclass(frozen=True, slots=True)
class Booking:
    """A request together with the rows that it becomes."""

    request: PostingRequest
    posted: Posted


@dataclass(frozen=True, slots=True)
class Decision:
    """What a batch does: an outcome for each request of each group, and the rows to write."""

    outcomes: list[tuple[Outcome, ...]]
    bookings: list[Booking]
    moved: Mapping[UUID, tuple[int, int]]
    """New balance (signed, credit positive) and sequence of each account that moved."""
    posted_at: datetime


def decide(
    groups: Iterable[PostingGroup],
    locked: Mapping[UUID, LockedAccount],
    known_keys: Mapping[CallerKey, KnownKey],
    now: datetime,
) -> Decision:
    """Decide a batch; `now` is the database's clock, read after the locks.

    The batch is posted at `now`, or at the last posting of any locked account where the clock has gone backwards since:
    along an account's sequence the posting time never decreases.
    """
    posted_at = max(
        (account.posted_at for account in locked.values() if account.posted_at is not None),
        default=now,
    )
    book = _Book(locked, known_keys, max(posted_at, now))
    outcomes = [book.post_group(group) for group in groups]
    return Decision(outcomes, book.bookings, book.moved, book.posted_at)


@dataclass(slots=True)
class _Book:
    """The state of the accounts as the batch goes on; `moved` and `bookings` hold what differs from the database."""

    locked: Mapping[UUID, LockedAccount]
    known_keys: Mapping[CallerKey, KnownKey]
    posted_at: datetime
    bookings: list[Booking] = field(default_factory=list[Booking])
    moved: dict[UUID, tuple[int, int]] = field(default_factory=dict[UUID, tuple[int, int]])
    booked_keys: dict[CallerKey, Booking] = field(default_factory=dict[CallerKey, Booking])

    def post_group(self, group: PostingGroup) -> tuple[Outcome, ...]:
        if len(group) == 1:
            return (self.post(group[0]),)
        before, keys_before, length = dict(self.moved), dict(self.booked_keys), len(self.bookings)
        outcomes: list[Outcome] = []
        for request in group:
            outcome = self.post(request)
            if isinstance(outcome, Refused):
                self.moved, self.booked_keys = before, keys_before
                del self.bookings[length:]
                return tuple(
                    outcome if index == len(outcomes) else NotAttempted()
                    for index in range(len(group))
                )
            outcomes.append(outcome)
        return tuple(outcomes)

    def post(self, request: PostingRequest) -> Outcome:
        earlier = self.replay_of(request)
        if earlier is not None:
            return earlier
        refusal = self.refuse_accounts(request.legs)
        if refusal is not None:
            return Refused(refusal)
        after: dict[UUID, tuple[int, int]] = {}
        entries: list[Entry] = []
        for leg in request.legs:
            balance, sequence = after.get(leg.account_id) or self.standing(leg.account_id)
            balance += leg.amount.minor_units
            after[leg.account_id] = balance, sequence + 1
            entries.append(
                Entry(
                    account=self.locked[leg.account_id].account,
                    transaction_id=request.id,
                    sequence=sequence + 1,
                    amount=leg.amount.minor_units,
                    balance_after=balance,
                    posted_at=self.posted_at,
                )
            )
        # Who can't pay learns nothing of who would receive: that a balance would overflow tells how large it is.
        for leg in request.legs:
            refusal = self.refuse_overdraft(leg, after[leg.account_id][0])
            if refusal is not None:
                return Refused(refusal)
        for leg, entry in zip(request.legs, entries, strict=True):
            if not fits_int64(entry.balance_after):
                return Refused(AmountOverflow(leg.amount_path))
        self.moved.update(after)
        posted = Posted(self.transaction(request), tuple(entries))
        booking = Booking(request, posted)
        self.bookings.append(booking)
        self.booked_keys[request.caller, request.key] = booking
        return posted

    def replay_of(self, request: PostingRequest) -> Outcome | None:
        """Answer a request whose key is booked already; None where it is free."""
        known = self.known_keys.get((request.caller, request.key))
        if known is not None:
            conflict = conflict_with(known, request.fingerprint)
            return Replay(known) if conflict is None else Refused(conflict)
        booking = self.booked_keys.get((request.caller, request.key))
        if booking is not None:
            known = KnownKey(booking.request.fingerprint, booking.request.id, None)
            conflict = conflict_with(known, request.fingerprint)
            return replace(booking.posted, replayed=True) if conflict is None else Refused(conflict)
        return None

    def standing(self, account_id: UUID) -> tuple[int, int]:
        moved = self.moved.get(account_id)
        if moved is not None:
            return moved
        account = self.locked[account_id]
        return account.balance, account.sequence

    def refuse_accounts(self, legs: Sequence[RequestedLeg]) -> Refusal | None:
        """Judge what doesn't depend on amounts; existence and ownership of every account come first."""
        for leg in legs:
            locked = self.locked.get(leg.account_id)
            if locked is None or not _addressable(locked.account, leg):
                return AccountNotFound(leg.account_path)
        for leg in legs:
            account = self.locked[leg.account_id].account
            if account.currency != leg.amount.currency:
                return CurrencyMismatch(
                    (*leg.amount_path[:-1], "currency"),
                    account_currency=account.currency,
                    currency=leg.amount.currency,
                )
            match account.status:
                case AccountStatus.ACTIVE:
                    pass
                case AccountStatus.FROZEN:
                    return AccountFrozen(leg.account_path)
                case AccountStatus.CLOSED:
                    return AccountClosed(leg.account_path)
        return None

    def refuse_overdraft(self, leg: RequestedLeg, balance: int) -> Refusal | None:
        """Refuse where the account ends below zero, seen from its normal side, and may not."""
        account = self.locked[leg.account_id].account
        if account.allow_negative or account.from_normal_side(balance) >= 0:
            return None
        available = account.from_normal_side(self.standing(leg.account_id)[0])
        return InsufficientFunds(
            leg.amount_path,
            account_id=account.id,
            currency=account.currency,
            available=available,
            required=available - account.from_normal_side(balance),
        )

    def transaction(self, request: PostingRequest) -> Transaction:
        return Transaction(
            id=request.id,
            type=request.type,
            caller=request.caller,
            description=request.description,
            external_reference=request.external_reference,
            metadata=request.metadata,
            effective_at=request.effective_at or self.posted_at,
            posted_at=self.posted_at,
            reverses_id=request.reverses_id,
            legs=tuple(
                _leg(self.locked[requested.account_id].account, requested.amount.minor_units)
                for requested in request.legs
            ),
        )


def _addressable(account: Account, leg: RequestedLeg) -> bool:
    return (
        account.purpose is AccountPurpose.MAIN
        and (leg.owner is None or account.owner == leg.owner)
        and (not leg.credit_normal or account.credit_normal)
    )


def _leg(account: Account, amount: int) -> Leg:
    return Leg(account.id, account.code, account.owner, account.purpose, account.currency, amount)

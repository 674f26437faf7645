"""The decision: requests and the locked state go in, rows to write and refusals come out, all in memory.

Shape. Requests come in groups, each of which is booked wholly or not at all; a single request is a group of one. They
are decided in the order of their arrival, each seeing what the ones before it have done. A request that is refused
leaves no trace, so its neighbours are decided as if it had never come.

Cost. A few dictionary look-ups for each leg; no clock, no network, no database.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    InvalidInput,
    Refusal,
    SequenceMismatch,
)
from app.ledger.idempotency import KnownKey, conflict_with
from app.ledger.model import (
    Account,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
    Hold,
    Leg,
    Transaction,
)
from app.ledger.money import fits_int64
from app.ledger.posting import terms
from app.ledger.posting.changes import Booking, Changes, Line, Posted
from app.ledger.posting.routing import Books, Step
from app.ledger.posting.standing import CallerKey, Standing
from app.ledger.requests import Gather, PostingRequest, RequestedLeg

PostingGroup: TypeAlias = tuple[PostingRequest, ...]
"""Requests that are booked together or not at all."""


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
class Decision:
    """What a batch does: an outcome for each request of each group, and the rows to write."""

    outcomes: list[tuple[Outcome, ...]]
    bookings: list[Booking]
    moved: Mapping[UUID, tuple[int, int]]
    """New balance (signed, credit positive) and sequence of each account that moved and keeps a balance."""
    opened: Sequence[Account]
    """Held children that must be inserted first."""
    placed: Sequence[Hold]
    closed: Sequence[Hold]
    """Holds that begin and end, as they are now."""
    posted_at: datetime


def decide(groups: Iterable[PostingGroup], standing: Standing) -> Decision:
    """Decide a batch.

    It is posted at the clock's time, or at the last posting of any locked account where the clock has gone backwards since:
    along an account's sequence the posting time never decreases.
    """
    posted_at = max(
        (row.posted_at for row in standing.rows.values() if row.posted_at is not None),
        default=standing.now,
    )
    batch = _Batch(standing, max(posted_at, standing.now))
    outcomes = [batch.post_group(group) for group in groups]
    changes = batch.changes
    return Decision(
        outcomes,
        changes.bookings,
        changes.moved,
        [row.account for row in changes.opened.values()],
        list(changes.placed.values()),
        list(changes.closed.values()),
        batch.posted_at,
    )


class _Batch:
    """A batch while it is decided; `changes` is what differs from the database so far."""

    def __init__(self, standing: Standing, posted_at: datetime) -> None:
        self.standing = standing
        self.posted_at = posted_at
        self.changes = Changes()

    def post_group(self, group: PostingGroup) -> tuple[Outcome, ...]:
        if len(group) == 1:
            return (self.post(group[0]),)
        before = self.changes.copy()
        outcomes: list[Outcome] = []
        for request in group:
            outcome = self.post(request)
            if isinstance(outcome, Refused):
                self.changes = before
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
        books = Books(self.standing, self.changes)
        refusal = terms.refuse(request.terms, self.standing, self.changes) or self.refuse_accounts(
            books, request.legs
        )
        if refusal is not None:
            return Refused(refusal)
        steps = (
            books.gather(request.terms)
            if isinstance(request.terms, Gather)
            else [step for leg in request.legs for step in books.route(leg)]
        )
        if isinstance(steps, Refusal):
            return Refused(steps)
        refusal = self.refuse_balances(books, steps)
        if refusal is not None:
            return Refused(refusal)
        return self.book(request, books, [step.line for step in steps])

    def book(self, request: PostingRequest, books: Books, lines: list[Line]) -> Posted:
        changes = self.changes
        changes.moved.update(books.moved)
        changes.opened.update(books.opened)
        changes.numbers.update(books.numbers)
        transaction = self.transaction(request, lines)
        posted = Posted(
            transaction,
            tuple(line.entry_of(transaction) for line in lines),
            hold=terms.hold_of(request, self.standing, self.posted_at),
        )
        booking = Booking(
            request, posted, lines, terms.reversal_number(request.terms, self.standing, changes)
        )
        terms.note(request, posted, self.standing, changes)
        changes.bookings.append(booking)
        changes.booked_keys[request.caller, request.key] = booking
        return posted

    def replay_of(self, request: PostingRequest) -> Outcome | None:
        """Answer a request whose key is booked already; None where it is free."""
        key: CallerKey = (request.caller, request.key)
        known = self.standing.known_keys.get(key)
        if known is not None:
            conflict = conflict_with(known, request.fingerprint)
            return Replay(known) if conflict is None else Refused(conflict)
        booking = self.changes.booked_keys.get(key)
        if booking is not None:
            known = KnownKey(booking.request.fingerprint, booking.request.id, None)
            conflict = conflict_with(known, request.fingerprint)
            return replace(booking.posted, replayed=True) if conflict is None else Refused(conflict)
        return None

    def refuse_accounts(self, books: Books, legs: Sequence[RequestedLeg]) -> Refusal | None:
        """Judge what doesn't depend on amounts; existence and ownership of every account come first."""
        accounts: list[Account] = []
        for leg in legs:
            account = books.main_account(leg.account_id)
            if account is None or not _addressable(account, leg):
                return AccountNotFound(leg.account_path)
            accounts.append(account)
        for leg, account in zip(legs, accounts, strict=True):
            refusal = _refuse_currency(leg, account) or _refuse_status(leg, account)
            if refusal is not None:
                return refusal
            if leg.purpose is AccountPurpose.HELD and account.tracking is BalanceTracking.DERIVED:
                return InvalidInput(leg.account_path, "must not be a DERIVED account")
            if leg.if_sequence is not None:
                refusal = self.refuse_sequence(books, leg, account, leg.if_sequence)
                if refusal is not None:
                    return refusal
        return None

    def refuse_sequence(
        self, books: Books, leg: RequestedLeg, account: Account, expected: int
    ) -> Refusal | None:
        path = (*leg.account_path[:-1], "ifSequence")
        if account.hot:
            return InvalidInput(
                path, "must be left out where the account's tracking is not TRACKED"
            )
        _, found = books.standing_of(account.id)
        return None if found == expected else SequenceMismatch(path, expected, found)

    def refuse_balances(self, books: Books, steps: Sequence[Step]) -> Refusal | None:
        """Judge where the accounts end.

        Who can't pay learns nothing of who would receive: that a balance would overflow tells how large it is. So what
        is overdrawn comes first.
        """
        for step in steps:
            refusal = _refuse_overdraft(books, step)
            if refusal is not None:
                return refusal
        for step in steps:
            after = step.line.balance_after
            if not fits_int64(step.line.amount) or (after is not None and not fits_int64(after)):
                return AmountOverflow(step.amount_path)
        return None

    def transaction(self, request: PostingRequest, lines: Sequence[Line]) -> Transaction:
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
            hold_id=request.hold_id,
            legs=tuple(
                Leg(
                    line.main.id,
                    line.main.code,
                    line.main.owner,
                    line.row.purpose,
                    line.main.currency,
                    line.amount,
                )
                for line in lines
            ),
        )


def _addressable(account: Account, leg: RequestedLeg) -> bool:
    return (
        account.purpose is AccountPurpose.MAIN
        and (leg.owner is None or account.owner == leg.owner)
        and (not leg.credit_normal or account.credit_normal)
    )


def _refuse_currency(leg: RequestedLeg, account: Account) -> Refusal | None:
    if account.currency == leg.amount.currency:
        return None
    return CurrencyMismatch(
        (*leg.amount_path[:-1], "currency"),
        account_currency=account.currency,
        currency=leg.amount.currency,
    )


def _refuse_status(leg: RequestedLeg, account: Account) -> Refusal | None:
    match account.status:
        case AccountStatus.ACTIVE:
            return None
        case AccountStatus.FROZEN:
            return None if leg.releases else AccountFrozen(leg.account_path)
        case AccountStatus.CLOSED:
            return AccountClosed(leg.account_path)


def _refuse_overdraft(books: Books, step: Step) -> Refusal | None:
    """Refuse where the account ends below zero, seen from its normal side, and may not."""
    row, main = step.line.row, step.line.main
    if row.allow_negative:
        return None
    after = row.from_normal_side(books.ends_with(step.line))
    if after >= 0:
        return None
    available = row.from_normal_side(books.began_with(step.line))
    return InsufficientFunds(
        step.amount_path,
        account_id=main.id,
        currency=main.currency,
        available=available,
        required=available - after,
    )

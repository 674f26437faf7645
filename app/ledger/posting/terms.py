"""What a posting asks beside its legs, judged and carried out: holds that begin and end, and what is taken back."""

from dataclasses import replace
from datetime import datetime

from app.ledger.errors import (
    AlreadyReversed,
    HoldExpired,
    HoldNotFound,
    HoldNotOpen,
    InvalidInput,
    RefundExceedsOriginal,
    Refusal,
    WithdrawalNotFound,
    WithdrawalNotPending,
)
from app.ledger.model import Hold, HoldPurpose, HoldStatus
from app.ledger.posting.changes import Changes, Posted
from app.ledger.posting.standing import Standing, TakenBack
from app.ledger.requests import CloseHold, PlaceHold, PostingRequest, TakeBack, Terms

_NOTHING = TakenBack(times=0, amount=0, reversed=False)


def refuse(terms: Terms | None, standing: Standing, changes: Changes) -> Refusal | None:
    """Judge the terms; times are compared with the database's clock as it was after the locks."""
    match terms:
        case PlaceHold(expires_at=expires_at):
            if expires_at is not None and expires_at <= standing.now:
                return InvalidInput(("expiresAt",), "must lie in the future")
            return None
        case CloseHold():
            return _refuse_closing(terms, _hold(terms, standing, changes), standing.now)
        case TakeBack():
            return _refuse_taking_back(terms, _taken_back(terms, standing, changes))
        case _:
            return None


def hold_of(request: PostingRequest, standing: Standing, posted_at: datetime) -> Hold | None:
    """Return the hold as the posting leaves it; None where it has none."""
    match request.terms:
        case PlaceHold() as place:
            return Hold(
                id=place.hold_id,
                account_id=place.account_id,
                purpose=place.purpose,
                currency=request.legs[0].amount.currency,
                amount=place.amount,
                captured=0,
                status=HoldStatus.OPEN,
                expires_at=place.expires_at,
                description=request.description,
                metadata=request.metadata,
                external_reference=request.external_reference,
                failure_reason=None,
                created_at=posted_at,
                closed_at=None,
            )
        case CloseHold() as close:
            hold = standing.holds[close.hold_id]
            return replace(
                hold,
                status=close.status,
                captured=close.captured,
                external_reference=close.external_reference or hold.external_reference,
                failure_reason=close.failure_reason,
                closed_at=posted_at,
            )
        case _:
            return None


def reversal_number(terms: Terms | None, standing: Standing, changes: Changes) -> int | None:
    """Return the number that the posting bears among those that take its original back."""
    if not isinstance(terms, TakeBack):
        return None
    return _taken_back(terms, standing, changes).times + 1


def note(request: PostingRequest, posted: Posted, standing: Standing, changes: Changes) -> None:
    """Let the requests that come after this one in the batch see what it has done."""
    match request.terms:
        case PlaceHold(hold_id=hold_id) if posted.hold is not None:
            changes.placed[hold_id] = posted.hold
        case CloseHold(hold_id=hold_id) if posted.hold is not None:
            changes.closed[hold_id] = posted.hold
        case TakeBack() as terms:
            before = _taken_back(terms, standing, changes)
            changes.taken_back[terms.original_id] = TakenBack(
                before.times + 1, before.amount + terms.amount, reversed=terms.whole
            )
        case _:
            pass


def _hold(terms: CloseHold, standing: Standing, changes: Changes) -> Hold | None:
    return changes.closed.get(terms.hold_id) or standing.holds.get(terms.hold_id)


def _taken_back(terms: TakeBack, standing: Standing, changes: Changes) -> TakenBack:
    changed = changes.taken_back.get(terms.original_id)
    return changed or standing.taken_back.get(terms.original_id, _NOTHING)


def _refuse_closing(terms: CloseHold, hold: Hold | None, now: datetime) -> Refusal | None:
    withdrawal = terms.purpose is HoldPurpose.WITHDRAWAL
    if hold is None or hold.purpose is not terms.purpose:
        return WithdrawalNotFound(terms.path) if withdrawal else HoldNotFound(terms.path)
    over = hold.expires_at is not None and hold.expires_at <= now
    expired = hold.status is HoldStatus.EXPIRED or (hold.status is HoldStatus.OPEN and over)
    if expired and terms.status is HoldStatus.CAPTURED:
        # Whether it was released already makes no difference to who comes late.
        return HoldExpired(terms.path)
    if hold.status is not HoldStatus.OPEN:
        if withdrawal:
            return WithdrawalNotPending(terms.path, hold.status)
        return HoldNotOpen(terms.path, hold.status)
    if not over and terms.status is HoldStatus.EXPIRED:
        return InvalidInput(terms.path, "must have expired")
    return None


def _refuse_taking_back(terms: TakeBack, before: TakenBack) -> Refusal | None:
    if before.reversed or (terms.whole and before.times > 0):
        return AlreadyReversed(terms.path)
    refundable = terms.original_amount - before.amount
    if terms.amount > refundable:
        return RefundExceedsOriginal(
            terms.amount_path, currency=terms.currency, refundable=refundable
        )
    return None

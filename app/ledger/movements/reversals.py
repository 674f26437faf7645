"""Reversals and refunds: what a transaction did is taken back, once as a whole or several times in part.

How much of the original is left to take back is judged in `posting`, under the locks.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from app.ledger.errors import CurrencyMismatch, NotReversible, Path, Refusal, TransactionNotFound
from app.ledger.idempotency import fingerprint
from app.ledger.model import AccountPurpose, Leg, Transaction
from app.ledger.money import Money
from app.ledger.requests import PostingRequest, RequestedLeg, TakeBack
from app.ledger.rules import AMOUNT_PATH, refuse_amount, refuse_description, refuse_key

_ORIGINAL_PATH: Final[Path] = ("transactionId",)
_REASON_PATH: Final[Path] = ("reason",)

_PARTIES: Final = 2
"""How many accounts a transaction must concern so that part of its money has one way back."""

_WHY_NOT_REVERSIBLE: Final = {
    "hold": "a hold is given back by voiding it, and a withdrawal by settling it as failed",
    "release": "what was released can be held again by a new hold or withdrawal",
    "withdrawal": "what has left for a bank comes back by a deposit",
    "sweep": "a sweep changes no account's balance",
    "reversal": "a reversal is final; what it took back can be booked anew",
    "refund": "a refund is final; what it gave back can be booked anew",
}


@dataclass(frozen=True, slots=True)
class ReverseCommand:
    """Take all of a transaction back; an id that names nothing is None."""

    key: str
    transaction_id: UUID | None
    reason: str
    """Becomes the description of the reversal."""


@dataclass(frozen=True, slots=True)
class RefundCommand:
    """Take some of a transaction back; an id that names nothing is None."""

    key: str
    transaction_id: UUID | None
    amount: Money
    reason: str | None = None
    """Becomes the description of the refund."""


def reverse(
    command: ReverseCommand, original: Transaction | None, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Book the original's legs with their sides swapped; `original` is None where there is no such transaction.

    An account whose children took part gets one leg, whichever of them they were: a hold that was captured doesn't come
    back as one, and money that came from several stripes goes where credits go now.
    """
    refusal = refuse_key(command.key) or refuse_description(command.reason, _REASON_PATH)
    if refusal is not None:
        return refusal
    if original is None or original.id != command.transaction_id:
        return TransactionNotFound(_ORIGINAL_PATH)
    refusal = _refuse_type(original)
    if refusal is not None:
        return refusal
    with_children = {
        leg.account_id for leg in original.legs if leg.purpose is not AccountPurpose.MAIN
    }
    lines = _merged(original.legs, with_children)
    moved = _sum_of_credits(lines)
    return PostingRequest(
        id=transaction_id,
        type="reversal",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "reverseTransaction", {"transactionId": original.id, "reason": command.reason}
        ),
        legs=tuple(
            _leg(line.account_id, Money(-line.amount, line.currency), _ORIGINAL_PATH)
            for line in lines
        ),
        terms=TakeBack(
            original_id=original.id,
            original_amount=moved,
            amount=moved,
            whole=True,
            # Where there are several, none stands for all; a reversal is never compared in any of them.
            currency=lines[0].currency,
            path=_ORIGINAL_PATH,
            amount_path=_ORIGINAL_PATH,
        ),
        description=command.reason,
    )


def refund(
    command: RefundCommand, original: Transaction | None, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Move the amount back between the original's two accounts; `original` is None where there is no such transaction."""
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_description(command.reason, _REASON_PATH)
    )
    if refusal is not None:
        return refusal
    if original is None or original.id != command.transaction_id:
        return TransactionNotFound(_ORIGINAL_PATH)
    refusal = _refuse_type(original)
    if refusal is not None:
        return refusal
    lines = _merged(original.legs, {leg.account_id for leg in original.legs})
    if len(lines) != _PARTIES:
        return NotReversible(
            _ORIGINAL_PATH, "only what moved between two accounts can be refunded in part"
        )
    # Both lines are of one currency, since each currency sums to zero.
    amount, currency = command.amount, lines[0].currency
    if amount.currency != currency:
        return CurrencyMismatch(
            ("amount", "currency"), account_currency=currency, currency=amount.currency
        )
    return PostingRequest(
        id=transaction_id,
        type="refund",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "refundTransaction",
            {"transactionId": original.id, "amount": amount, "reason": command.reason},
        ),
        legs=tuple(
            _leg(line.account_id, -amount if line.amount > 0 else amount, AMOUNT_PATH)
            for line in lines
        ),
        terms=TakeBack(
            original_id=original.id,
            original_amount=_sum_of_credits(lines),
            amount=amount.minor_units,
            whole=False,
            currency=currency,
            path=_ORIGINAL_PATH,
            amount_path=AMOUNT_PATH,
        ),
        description=command.reason,
    )


def _refuse_type(original: Transaction) -> Refusal | None:
    why = _WHY_NOT_REVERSIBLE.get(original.type)
    return None if why is None else NotReversible(_ORIGINAL_PATH, why)


def _merged(legs: Iterable[Leg], account_ids: Collection[UUID]) -> list[Leg]:
    """Make one line of all legs of each of these accounts; the legs of others, and the order, stay as they are."""
    lines: dict[UUID | int, Leg] = {}
    for number, leg in enumerate(legs):
        key = leg.account_id if leg.account_id in account_ids else number
        before = lines.get(key)
        lines[key] = leg if before is None else replace(before, amount=before.amount + leg.amount)
    return [line for line in lines.values() if line.amount != 0]


def _sum_of_credits(lines: Iterable[Leg]) -> int:
    return sum(line.amount for line in lines if line.amount > 0)


def _leg(account_id: UUID, amount: Money, amount_path: Path) -> RequestedLeg:
    return RequestedLeg(
        account_id=account_id,
        amount=amount,
        account_path=_ORIGINAL_PATH,
        amount_path=amount_path,
    )

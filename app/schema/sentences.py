"""A sentence for people on each refusal of the ledger; it may change, so nothing should depend on it."""

from typing import TypeAlias, assert_never, cast

from app.ledger import errors
from app.ledger.model import HoldStatus
from app.ledger.money import Money

AnyRefusal: TypeAlias = (
    errors.InsufficientFunds
    | errors.IdempotencyConflict
    | errors.InvalidInput
    | errors.InvalidAmount
    | errors.CurrencyMismatch
    | errors.SameAccount
    | errors.Unbalanced
    | errors.AccountNotFound
    | errors.AccountFrozen
    | errors.AccountClosed
    | errors.AccountNotEmpty
    | errors.CodeTaken
    | errors.AmountOverflow
    | errors.SequenceMismatch
    | errors.TransactionNotFound
    | errors.AlreadyReversed
    | errors.RefundExceedsOriginal
    | errors.NotReversible
    | errors.HoldNotFound
    | errors.HoldNotOpen
    | errors.HoldExpired
    | errors.CaptureExceedsHold
    | errors.WithdrawalNotFound
    | errors.WithdrawalNotPending
)
"""The ledger's refusals, all of them."""


def sentence(refusal: errors.Refusal) -> str:
    """Say why a request was not carried out."""
    return _sentence(cast("AnyRefusal", refusal))


def _sentence(refusal: AnyRefusal) -> str:  # noqa: C901, PLR0911, PLR0912 - one sentence for each refusal, and no logic
    match refusal:
        case errors.InsufficientFunds():
            return (
                f"The account has {_amount(refusal.available, refusal.currency)} available, "
                f"but {_amount(refusal.required, refusal.currency)} is needed."
            )
        case errors.IdempotencyConflict():
            return "The idempotency key already stands for another request."
        case errors.InvalidInput():
            return f"{refusal.path[-1]} {refusal.rule}."
        case errors.InvalidAmount():
            return "The amount must be greater than zero."
        case errors.CurrencyMismatch():
            return (
                f"The amount is in {refusal.currency}, but the account is in "
                f"{refusal.account_currency}."
            )
        case errors.SameAccount():
            return "The money would go back to the account that it comes from."
        case errors.Unbalanced():
            return (
                f"Debits of {_amount(refusal.debits, refusal.currency)} and credits of "
                f"{_amount(refusal.credits, refusal.currency)} differ."
            )
        case errors.AccountNotFound():
            return "There is no such account."
        case errors.AccountFrozen():
            return "The account is frozen."
        case errors.AccountClosed():
            return "The account is closed."
        case errors.AccountNotEmpty():
            return "The account still has money or an open hold."
        case errors.CodeTaken():
            return "Another account has this code."
        case errors.AmountOverflow():
            return "The balance would become too large."
        case errors.SequenceMismatch():
            return f"The account stands at sequence {refusal.found}, not at {refusal.expected}."
        case errors.TransactionNotFound():
            return "There is no such transaction."
        case errors.AlreadyReversed():
            return "The transaction has already been reversed or refunded."
        case errors.RefundExceedsOriginal():
            refundable = _amount(refusal.refundable, refusal.currency)
            return f"No more than {refundable} of the transaction can still be refunded."
        case errors.NotReversible():
            return f"This can't be taken back: {refusal.rule}."
        case errors.HoldNotFound():
            return "There is no such hold."
        case errors.HoldNotOpen():
            return f"The hold {_ENDS[refusal.status]}."
        case errors.HoldExpired():
            return "The hold's time is over."
        case errors.CaptureExceedsHold():
            return f"The hold has only {_amount(refusal.held, refusal.currency)}."
        case errors.WithdrawalNotFound():
            return "There is no such withdrawal."
        case errors.WithdrawalNotPending():
            return f"The withdrawal {_SETTLEMENTS[refusal.status]}."
        case _:
            assert_never(refusal)


_ENDS = {
    HoldStatus.OPEN: "is open",
    HoldStatus.CAPTURED: "has been captured",
    HoldStatus.VOIDED: "has been voided",
    HoldStatus.EXPIRED: "has expired",
}

_SETTLEMENTS = {
    HoldStatus.OPEN: "is pending",
    HoldStatus.CAPTURED: "has been completed",
    HoldStatus.VOIDED: "has failed",
    HoldStatus.EXPIRED: "has expired",
}


def _amount(minor_units: int, currency: str) -> str:
    return f"{Money(minor_units, currency).decimal} {currency}"

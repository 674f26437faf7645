"""Every way in which the ledger says no, as data: a closed set, each member a class with its code and its facts.

A refusal changed nothing and its idempotency key stays free. Sentences for people are made where they are shown.
What isn't a refusal (no connection, no place in the queue, a fault of ours) is an exception of another family.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias
from uuid import UUID

from app.ledger.model import HoldStatus

Path: TypeAlias = tuple[str, ...]
"""Where in the request the cause lies, such as ("amount", "minorUnits"); the names are those of the API."""


class RefusalCode(StrEnum):
    """The stable name of a refusal."""

    INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    INVALID_INPUT = "INVALID_INPUT"
    INVALID_AMOUNT = "INVALID_AMOUNT"
    CURRENCY_MISMATCH = "CURRENCY_MISMATCH"
    SAME_ACCOUNT = "SAME_ACCOUNT"
    UNBALANCED = "UNBALANCED"
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    ACCOUNT_FROZEN = "ACCOUNT_FROZEN"
    ACCOUNT_CLOSED = "ACCOUNT_CLOSED"
    ACCOUNT_NOT_EMPTY = "ACCOUNT_NOT_EMPTY"
    CODE_TAKEN = "CODE_TAKEN"
    AMOUNT_OVERFLOW = "AMOUNT_OVERFLOW"
    SEQUENCE_MISMATCH = "SEQUENCE_MISMATCH"
    TRANSACTION_NOT_FOUND = "TRANSACTION_NOT_FOUND"
    ALREADY_REVERSED = "ALREADY_REVERSED"
    REFUND_EXCEEDS_ORIGINAL = "REFUND_EXCEEDS_ORIGINAL"
    NOT_REVERSIBLE = "NOT_REVERSIBLE"
    HOLD_NOT_FOUND = "HOLD_NOT_FOUND"
    HOLD_NOT_OPEN = "HOLD_NOT_OPEN"
    HOLD_EXPIRED = "HOLD_EXPIRED"
    CAPTURE_EXCEEDS_HOLD = "CAPTURE_EXCEEDS_HOLD"
    WITHDRAWAL_NOT_FOUND = "WITHDRAWAL_NOT_FOUND"
    WITHDRAWAL_NOT_PENDING = "WITHDRAWAL_NOT_PENDING"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a well-formed request was not carried out, and where in it the cause lies."""

    code: ClassVar[RefusalCode]
    retryable: ClassVar[bool] = False
    """Whether the identical request may succeed later without its sender changing it."""

    path: Path


@dataclass(frozen=True, slots=True)
class InsufficientFunds(Refusal):
    """The account would fall below zero; amounts are seen from its normal side, minor units."""

    code = RefusalCode.INSUFFICIENT_FUNDS
    retryable = True

    account_id: UUID
    currency: str
    available: int
    required: int


@dataclass(frozen=True, slots=True)
class IdempotencyConflict(Refusal):
    """The key already stands for another request of the same caller."""

    code = RefusalCode.IDEMPOTENCY_CONFLICT

    transaction_id: UUID | None
    """What the key stands for, where that is a transaction."""
    differing_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidInput(Refusal):
    """A field breaks a rule of its own; `rule` says which, in words."""

    code = RefusalCode.INVALID_INPUT

    rule: str


@dataclass(frozen=True, slots=True)
class InvalidAmount(Refusal):
    """An amount that must be positive isn't."""

    code = RefusalCode.INVALID_AMOUNT


@dataclass(frozen=True, slots=True)
class CurrencyMismatch(Refusal):
    """The amount's currency isn't the account's."""

    code = RefusalCode.CURRENCY_MISMATCH

    account_currency: str
    currency: str


@dataclass(frozen=True, slots=True)
class SameAccount(Refusal):
    """Both sides of the movement are one account."""

    code = RefusalCode.SAME_ACCOUNT


@dataclass(frozen=True, slots=True)
class Unbalanced(Refusal):
    """Debits and credits differ in a currency; amounts in minor units."""

    code = RefusalCode.UNBALANCED

    currency: str
    debits: int
    credits: int


@dataclass(frozen=True, slots=True)
class AccountNotFound(Refusal):
    """There is no such account, or it isn't the caller's: the two look the same."""

    code = RefusalCode.ACCOUNT_NOT_FOUND


@dataclass(frozen=True, slots=True)
class AccountFrozen(Refusal):
    """The account is frozen: no money moves in or out."""

    code = RefusalCode.ACCOUNT_FROZEN
    retryable = True


@dataclass(frozen=True, slots=True)
class AccountClosed(Refusal):
    """The account is closed for good."""

    code = RefusalCode.ACCOUNT_CLOSED


@dataclass(frozen=True, slots=True)
class AccountNotEmpty(Refusal):
    """The account still has money or an open hold, so it can't be closed."""

    code = RefusalCode.ACCOUNT_NOT_EMPTY
    retryable = True


@dataclass(frozen=True, slots=True)
class CodeTaken(Refusal):
    """Another account already bears the code."""

    code = RefusalCode.CODE_TAKEN


@dataclass(frozen=True, slots=True)
class AmountOverflow(Refusal):
    """The balance would leave the range of a signed 64-bit integer."""

    code = RefusalCode.AMOUNT_OVERFLOW
    retryable = True


@dataclass(frozen=True, slots=True)
class SequenceMismatch(Refusal):
    """The account does not stand at the sequence that the request makes its condition."""

    code = RefusalCode.SEQUENCE_MISMATCH

    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class TransactionNotFound(Refusal):
    """There is no such transaction, or the caller may not see it: the two look the same."""

    code = RefusalCode.TRANSACTION_NOT_FOUND


@dataclass(frozen=True, slots=True)
class AlreadyReversed(Refusal):
    """The transaction has been reversed, or refunded in part, so that a reversal would give back too much."""

    code = RefusalCode.ALREADY_REVERSED


@dataclass(frozen=True, slots=True)
class RefundExceedsOriginal(Refusal):
    """All refunds together would exceed the transaction; amounts in minor units."""

    code = RefusalCode.REFUND_EXCEEDS_ORIGINAL

    currency: str
    refundable: int
    """What may still be refunded."""


@dataclass(frozen=True, slots=True)
class NotReversible(Refusal):
    """Transactions of this kind can't be reversed or refunded; `rule` says why, in words."""

    code = RefusalCode.NOT_REVERSIBLE

    rule: str


@dataclass(frozen=True, slots=True)
class HoldNotFound(Refusal):
    """There is no such hold."""

    code = RefusalCode.HOLD_NOT_FOUND


@dataclass(frozen=True, slots=True)
class HoldNotOpen(Refusal):
    """The hold has been captured, voided or has expired."""

    code = RefusalCode.HOLD_NOT_OPEN

    status: HoldStatus


@dataclass(frozen=True, slots=True)
class HoldExpired(Refusal):
    """The hold's time is over by the database's clock, whether it was released already or not."""

    code = RefusalCode.HOLD_EXPIRED


@dataclass(frozen=True, slots=True)
class CaptureExceedsHold(Refusal):
    """The amount is more than is held; amounts in minor units."""

    code = RefusalCode.CAPTURE_EXCEEDS_HOLD

    currency: str
    held: int


@dataclass(frozen=True, slots=True)
class WithdrawalNotFound(Refusal):
    """There is no such withdrawal."""

    code = RefusalCode.WITHDRAWAL_NOT_FOUND


@dataclass(frozen=True, slots=True)
class WithdrawalNotPending(Refusal):
    """The withdrawal has been settled."""

    code = RefusalCode.WITHDRAWAL_NOT_PENDING

    status: HoldStatus


class LedgerUnavailableError(Exception):
    """No place or no connection in time; whether it was booked or not, the same request may be sent again."""


class LedgerIncidentError(Exception):
    """What should have been booked or refused failed, most likely at a constraint: a fault of ours, never the caller's."""

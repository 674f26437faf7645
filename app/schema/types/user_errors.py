"""Refusals as the API tells them: a stable code, a sentence for people, and where in the input the cause lies."""

from enum import Enum
from typing import TypeAlias, assert_never, cast

import strawberry

from app.ledger import errors
from app.ledger.errors import Path
from app.ledger.money import Money as ExactMoney
from app.schema.described import enum_type, interface_type, object_type
from app.schema.ids import encode_account_id, encode_transaction_id
from app.schema.types.money import Money


class ErrorCode(Enum):
    """The stable name of a refusal, those of later operations included."""

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


enum_type(
    ErrorCode,
    "The stable name of a refusal.",
    {
        "INSUFFICIENT_FUNDS": "The account would fall below zero.",
        "IDEMPOTENCY_CONFLICT": "The key already stands for another request of the same caller.",
        "INVALID_INPUT": "A field breaks a rule of its own, such as a length.",
        "INVALID_AMOUNT": "An amount that must be positive isn't.",
        "CURRENCY_MISMATCH": "The amount's currency isn't the account's.",
        "SAME_ACCOUNT": "Both sides of the movement are one account.",
        "UNBALANCED": "The legs don't sum to zero in each currency.",
        "ACCOUNT_NOT_FOUND": "There is no such account, or it isn't the caller's.",
        "ACCOUNT_FROZEN": "The account is frozen.",
        "ACCOUNT_CLOSED": "The account is closed.",
        "ACCOUNT_NOT_EMPTY": "The account has money or open holds, so it can't be closed.",
        "CODE_TAKEN": "Another account has this code.",
        "AMOUNT_OVERFLOW": "The balance would leave the range of a signed 64-bit integer.",
        "SEQUENCE_MISMATCH": "The account has moved since the sequence that was named.",
        "TRANSACTION_NOT_FOUND": "There is no such transaction, or the caller may not see it.",
        "ALREADY_REVERSED": "The transaction has been reversed.",
        "REFUND_EXCEEDS_ORIGINAL": "All refunds together would exceed the transaction.",
        "NOT_REVERSIBLE": "Transactions of this type can't be reversed.",
        "HOLD_NOT_FOUND": "There is no such hold, or it isn't the caller's.",
        "HOLD_NOT_OPEN": "The hold has been captured, voided or has expired.",
        "HOLD_EXPIRED": "The hold's time is over.",
        "CAPTURE_EXCEEDS_HOLD": "The amount is more than is held.",
        "WITHDRAWAL_NOT_FOUND": "There is no such withdrawal, or it isn't the caller's.",
        "WITHDRAWAL_NOT_PENDING": "The withdrawal has been settled.",
    },
)

_CODE = "The stable name of the refusal."
_MESSAGE = "A sentence for people; may change, so nothing should depend on it."
_PATH = 'Where in the input, such as ["input", "amount", "minorUnits"].'
_RETRYABLE = "True where the identical request may succeed later without the caller changing it."


@interface_type
class UserError:
    """Why a well-formed, authorised request was not carried out.

    It changed nothing and its idempotency key stays free, so that the same request may be sent again with the same key
    once its cause is gone.
    """

    code: ErrorCode = strawberry.field(description=_CODE)
    message: str = strawberry.field(description=_MESSAGE)
    path: list[str] = strawberry.field(description=_PATH)
    retryable: bool = strawberry.field(description=_RETRYABLE)


@object_type
class InsufficientFunds(UserError):  # noqa: N818 - a type of the API, not an exception
    """The account has less than the request needs, and may not fall below zero."""

    account_id: strawberry.ID = strawberry.field(description="The account that lacks the money.")
    available: Money = strawberry.field(description="What can be spent now.")
    required: Money = strawberry.field(description="What the request needs.")
    shortfall: Money = strawberry.field(description="What is missing.")


@object_type
class IdempotencyConflict(UserError):  # noqa: N818 - a type of the API, not an exception
    """The key already stands for another request of the same caller."""

    transaction_id: strawberry.ID | None = strawberry.field(
        description="What the key already stands for, where the caller may see it."
    )
    differing_fields: list[str] = strawberry.field(
        description="The input fields that differ from the first request with this key."
    )


@object_type
class Refusal(UserError):  # noqa: N818 - a type of the API, not an exception
    """Every other refusal."""


AnyRefusal: TypeAlias = (
    errors.InsufficientFunds
    | errors.IdempotencyConflict
    | errors.InvalidInput
    | errors.InvalidAmount
    | errors.CurrencyMismatch
    | errors.SameAccount
    | errors.AccountNotFound
    | errors.AccountFrozen
    | errors.AccountClosed
    | errors.CodeTaken
    | errors.AmountOverflow
)
"""The ledger's refusals, all of them."""


def user_error(refusal: errors.Refusal, *, below: Path = ("input",)) -> UserError:
    """Show a refusal; `below` is where in the arguments the refused request stands."""
    code = ErrorCode[refusal.code.name]
    message = _message(cast("AnyRefusal", refusal))
    path = [*below, *refusal.path]
    match refusal:
        case errors.InsufficientFunds():
            missing = refusal.required - refusal.available
            return InsufficientFunds(
                code=code,
                message=message,
                path=path,
                retryable=refusal.retryable,
                account_id=strawberry.ID(encode_account_id(refusal.account_id)),
                available=Money.of(refusal.available, refusal.currency),
                required=Money.of(refusal.required, refusal.currency),
                shortfall=Money.of(missing, refusal.currency),
            )
        case errors.IdempotencyConflict(transaction_id=transaction_id):
            return IdempotencyConflict(
                code=code,
                message=message,
                path=path,
                retryable=refusal.retryable,
                transaction_id=None
                if transaction_id is None
                else strawberry.ID(encode_transaction_id(transaction_id)),
                differing_fields=list(refusal.differing_fields),
            )
        case _:
            return Refusal(code=code, message=message, path=path, retryable=refusal.retryable)


def _message(refusal: AnyRefusal) -> str:  # noqa: C901, PLR0911 - one sentence for each refusal, and no logic
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
        case errors.AccountNotFound():
            return "There is no such account."
        case errors.AccountFrozen():
            return "The account is frozen."
        case errors.AccountClosed():
            return "The account is closed."
        case errors.CodeTaken():
            return "Another account has this code."
        case errors.AmountOverflow():
            return "The balance would become too large."
        case _:
            assert_never(refusal)


def _amount(minor_units: int, currency: str) -> str:
    return f"{ExactMoney(minor_units, currency).decimal} {currency}"

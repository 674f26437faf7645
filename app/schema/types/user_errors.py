"""Refusals as the API tells them: a stable code, a sentence for people, and where in the input the cause lies."""

import strawberry

from app.ledger import errors
from app.ledger.errors import Path, RefusalCode
from app.schema.described import enum_type, interface_type, object_type
from app.schema.ids import encode_account_id, encode_transaction_id
from app.schema.sentences import sentence
from app.schema.types.money import Money

enum_type(
    RefusalCode,
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
        "SEQUENCE_MISMATCH": "The account doesn't stand at the sequence that was named.",
        "TRANSACTION_NOT_FOUND": "There is no such transaction, or the caller may not see it.",
        "ALREADY_REVERSED": "The transaction has been reversed or refunded.",
        "REFUND_EXCEEDS_ORIGINAL": "All refunds together would exceed the transaction.",
        "NOT_REVERSIBLE": "Transactions of this kind can't be reversed or refunded.",
        "HOLD_NOT_FOUND": "There is no such hold, or it isn't the caller's.",
        "HOLD_NOT_OPEN": "The hold has been captured, voided or has expired.",
        "HOLD_EXPIRED": "The hold's time is over.",
        "CAPTURE_EXCEEDS_HOLD": "The amount is more than is held.",
        "WITHDRAWAL_NOT_FOUND": "There is no such withdrawal, or it isn't the caller's.",
        "WITHDRAWAL_NOT_PENDING": "The withdrawal has been settled.",
    },
    name="ErrorCode",
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

    code: RefusalCode = strawberry.field(description=_CODE)
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


def user_error(refusal: errors.Refusal, *, below: Path = ("input",)) -> UserError:
    """Show a refusal; `below` is where in the arguments the refused request stands."""
    code, message, path = refusal.code, sentence(refusal), [*below, *refusal.path]
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

"""The movements of money as small functions: a command goes in, a posting request or a refusal comes out.

Only what a command says of itself is judged here. What depends on the accounts is judged in `posting`, under the locks.
"""

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast
from uuid import UUID

import orjson

from app.ledger.errors import (
    AccountNotFound,
    AmountOverflow,
    InvalidAmount,
    InvalidInput,
    Path,
    Refusal,
    SameAccount,
)
from app.ledger.idempotency import Fingerprint, fingerprint
from app.ledger.model import Json, JsonValue
from app.ledger.money import EXPONENTS, Money, fits_int64

KEY_PATTERN: Final = re.compile(r"[ -~]{1,128}", re.ASCII)
DESCRIPTION_LIMIT: Final = 500
EXTERNAL_REFERENCE_LIMIT: Final = 128
METADATA_LIMIT_BYTES: Final = 4_096
METADATA_DEPTH_LIMIT: Final = 32
CURRENCY_RULE: Final = "must be the upper-case ISO 4217 code of a currency with a minor unit"
YEARS: Final = range(2, 9_999)
"""The first and last year of the calendar lie outside it in some time zones."""


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
    description: str | None = None
    external_reference: str | None = None
    metadata: Json | None = None
    effective_at: datetime | None = None
    """When the fact happened; the posting time where None."""
    reverses_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TransferCommand:
    """Move money from an account of the caller's to any other wallet; an id that names nothing is None."""

    key: str
    from_account_id: UUID | None
    to_account_id: UUID | None
    amount: Money
    description: str | None = None
    metadata: Json | None = None


@dataclass(frozen=True, slots=True)
class DepositCommand:
    """Book money that came in from outside; an id that names nothing is None."""

    key: str
    account_id: UUID | None
    clearing_account_id: UUID | None
    amount: Money
    external_reference: str | None = None
    effective_at: datetime | None = None
    description: str | None = None
    metadata: Json | None = None


def transfer(
    command: TransferCommand, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Debit the sender, who must own the account, and credit the receiver.

    Both must be accounts that grow with credits: debiting an ASSET would raise it, and pay somebody out of nothing.
    """
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_text(command.description, DESCRIPTION_LIMIT, ("description",))
        or refuse_metadata(command.metadata)
    )
    if refusal is not None:
        return refusal
    if command.from_account_id is None:
        return AccountNotFound(("fromAccountId",))
    if command.to_account_id is None:
        return AccountNotFound(("toAccountId",))
    if command.from_account_id == command.to_account_id:
        return SameAccount(("toAccountId",))
    amount, amount_path = command.amount, ("amount", "minorUnits")
    return PostingRequest(
        id=transaction_id,
        type="transfer",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "transfer",
            {
                "fromAccountId": command.from_account_id,
                "toAccountId": command.to_account_id,
                "amount": amount,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=(
            RequestedLeg(
                account_id=command.from_account_id,
                amount=Money(-amount.minor_units, amount.currency),
                account_path=("fromAccountId",),
                amount_path=amount_path,
                owner=caller,
                credit_normal=True,
            ),
            RequestedLeg(
                account_id=command.to_account_id,
                amount=amount,
                account_path=("toAccountId",),
                amount_path=amount_path,
                credit_normal=True,
            ),
        ),
        description=command.description,
        metadata=command.metadata,
    )


def refuse_deposit(command: DepositCommand) -> Refusal | None:
    """Judge what a deposit says of itself, all but the clearing account."""
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_text(command.external_reference, EXTERNAL_REFERENCE_LIMIT, ("externalReference",))
        or refuse_instant(command.effective_at)
        or refuse_text(command.description, DESCRIPTION_LIMIT, ("description",))
        or refuse_metadata(command.metadata)
    )
    if refusal is None and command.account_id is None:
        return AccountNotFound(("accountId",))
    return refusal


def deposit(command: DepositCommand, caller: str, transaction_id: UUID) -> PostingRequest | Refusal:
    """Debit the clearing account, which stands for the bank, and credit the account that receives."""
    refusal = refuse_deposit(command)
    if refusal is not None:
        return refusal
    if command.account_id is None:
        return AccountNotFound(("accountId",))
    if command.clearing_account_id is None:
        return AccountNotFound(("clearingAccountId",))
    if command.account_id == command.clearing_account_id:
        return SameAccount(("clearingAccountId",))
    amount, amount_path = command.amount, ("amount", "minorUnits")
    return PostingRequest(
        id=transaction_id,
        type="deposit",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "deposit",
            {
                "accountId": command.account_id,
                "clearingAccountId": command.clearing_account_id,
                "amount": amount,
                "externalReference": command.external_reference,
                "effectiveAt": command.effective_at,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=(
            RequestedLeg(
                account_id=command.clearing_account_id,
                amount=Money(-amount.minor_units, amount.currency),
                account_path=("clearingAccountId",),
                amount_path=amount_path,
            ),
            RequestedLeg(
                account_id=command.account_id,
                amount=amount,
                account_path=("accountId",),
                amount_path=amount_path,
            ),
        ),
        description=command.description,
        external_reference=command.external_reference,
        metadata=command.metadata,
        effective_at=command.effective_at,
    )


def refuse_key(key: str) -> Refusal | None:
    """Refuse an idempotency key that isn't 1 to 128 printable ASCII characters."""
    if KEY_PATTERN.fullmatch(key):
        return None
    return InvalidInput(("idempotencyKey",), "must be 1 to 128 printable ASCII characters")


def refuse_amount(amount: Money) -> Refusal | None:
    """Refuse an amount that isn't positive, that no balance could hold, or that isn't of a currency that Saldo keeps."""
    if amount.currency not in EXPONENTS:
        return InvalidInput(("amount", "currency"), CURRENCY_RULE)
    if amount.minor_units <= 0:
        return InvalidAmount(("amount", "minorUnits"))
    if not fits_int64(amount.minor_units):
        return AmountOverflow(("amount", "minorUnits"))
    return None


def refuse_text(text: str | None, limit: int, path: Path) -> Refusal | None:
    """Refuse a text that is longer than the limit in characters, or that the database can't store."""
    if text is None:
        return None
    if len(text) > limit:
        return InvalidInput(path, f"must have at most {limit} characters")
    if not storable(text):
        return InvalidInput(path, "must not contain U+0000 or lone surrogates")
    return None


def refuse_instant(instant: datetime | None) -> Refusal | None:
    """Refuse an instant so near the ends of the calendar that it can't be written in every time zone."""
    if instant is None:
        return None
    # Beyond the first or the last day of the calendar an instant can't even be turned to UTC.
    with contextlib.suppress(OverflowError):
        if instant.astimezone(UTC).year in YEARS:
            return None
    return InvalidInput(
        ("effectiveAt",), f"must lie between the years {YEARS.start} and {YEARS.stop - 1}"
    )


def refuse_metadata(metadata: object, path: Path = ("metadata",)) -> Refusal | None:
    """Refuse metadata that isn't an object, exceeds 4 KiB once encoded, or can't be stored."""
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        return InvalidInput(path, "must be a JSON object")
    try:
        encoded = orjson.dumps(metadata)
    except (TypeError, ValueError, RecursionError):
        return InvalidInput(
            path, "must hold nothing but JSON values, numbers of at most 64 bits and valid text"
        )
    if len(encoded) > METADATA_LIMIT_BYTES:
        return InvalidInput(
            path, f"must have at most {METADATA_LIMIT_BYTES} bytes once encoded as JSON"
        )
    if not _storable_json(cast("Json", metadata), METADATA_DEPTH_LIMIT):
        return InvalidInput(
            path,
            f"must nest at most {METADATA_DEPTH_LIMIT} deep, with finite numbers and no U+0000",
        )
    return None


def storable(text: str) -> bool:
    """Tell whether PostgreSQL can store the text: neither U+0000 nor half of a surrogate pair."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable_json(value: "JsonValue | Json", depth: int) -> bool:
    match value:
        case str():
            return storable(value)
        case float():
            return abs(value) < float("inf")
        case dict():
            return depth > 0 and all(
                storable(name) and _storable_json(member, depth - 1)
                for name, member in value.items()
            )
        case list():
            return depth > 0 and all(_storable_json(member, depth - 1) for member in value)
        case _:
            return True

"""The rules that fields obey by themselves, whichever movement bears them; each returns a refusal or None.

What depends on the accounts is judged in `posting`, under the locks.
"""

import contextlib
import re
from datetime import UTC, datetime
from typing import Final, cast

import orjson

from app.ledger.errors import AmountOverflow, InvalidAmount, InvalidInput, Path, Refusal
from app.ledger.model import Json, JsonValue
from app.ledger.money import EXPONENTS, Money, fits_int64

KEY_PATTERN: Final = re.compile(r"[ -~]{1,128}", re.ASCII)
DESCRIPTION_LIMIT: Final = 500
EXTERNAL_REFERENCE_LIMIT: Final = 128
METADATA_LIMIT_BYTES: Final = 4_096
METADATA_DEPTH_LIMIT: Final = 32
AMOUNT_PATH: Final[Path] = ("amount", "minorUnits")
"""Where the number stands in a request that moves one amount."""

CURRENCY_RULE: Final = "must be the upper-case ISO 4217 code of a currency with a minor unit"
YEARS: Final = range(2, 9_999)
"""The first and last year of the calendar lie outside it in some time zones."""


def refuse_key(key: str) -> Refusal | None:
    """Refuse an idempotency key that isn't 1 to 128 printable ASCII characters."""
    if KEY_PATTERN.fullmatch(key):
        return None
    return InvalidInput(("idempotencyKey",), "must be 1 to 128 printable ASCII characters")


def refuse_amount(amount: Money, path: Path = ("amount",)) -> Refusal | None:
    """Refuse an amount that isn't positive, that no balance could hold, or that isn't of a currency that Saldo keeps."""
    if amount.currency not in EXPONENTS:
        return InvalidInput((*path, "currency"), CURRENCY_RULE)
    if amount.minor_units <= 0:
        return InvalidAmount((*path, "minorUnits"))
    if not fits_int64(amount.minor_units):
        return AmountOverflow((*path, "minorUnits"))
    return None


def refuse_description(description: str | None, path: Path = ("description",)) -> Refusal | None:
    """Refuse a description of more than 500 characters, or one that can't be stored."""
    return refuse_text(description, DESCRIPTION_LIMIT, path)


def refuse_external_reference(reference: str | None) -> Refusal | None:
    """Refuse another system's name for the fact that has more than 128 characters, or that can't be stored."""
    return refuse_text(reference, EXTERNAL_REFERENCE_LIMIT, ("externalReference",))


def refuse_text(text: str | None, limit: int, path: Path) -> Refusal | None:
    """Refuse a text that is longer than the limit in characters, or that the database can't store."""
    if text is None:
        return None
    if len(text) > limit:
        return InvalidInput(path, f"must have at most {limit} characters")
    if not storable(text):
        return InvalidInput(path, "must not contain U+0000 or lone surrogates")
    return None


def refuse_instant(instant: datetime | None, path: Path = ("effectiveAt",)) -> Refusal | None:
    """Refuse an instant so near the ends of the calendar that it can't be written in every time zone."""
    if instant is None:
        return None
    # Beyond the first or the last day of the calendar an instant can't even be turned to UTC.
    with contextlib.suppress(OverflowError):
        if instant.astimezone(UTC).year in YEARS:
            return None
    return InvalidInput(path, f"must lie between the years {YEARS.start} and {YEARS.stop - 1}")


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

"""What several inputs have in common."""

from typing import Final, cast

from app.ledger.model import Json
from app.schema.described import given
from app.schema.scalars import JsonValue

KEY_TEXT: Final = (
    "Made by the client once per intention, before the first try, and sent again on every retry; 1 to 128 printable "
    "ASCII characters; unique per caller and kept for ever."
)
DESCRIPTION_TEXT: Final = "At most 500 characters."
METADATA_TEXT: Final = "An object of at most 4 KiB once encoded."
REFERENCE_TEXT: Final = "Name of the same fact in another system; at most 128 characters."


def json_object(value: JsonValue | None) -> Json | None:
    """Read metadata; the ledger refuses what isn't an object, in words of its own."""
    return cast("Json | None", given(value))

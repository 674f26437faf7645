"""Which entries of an account are wanted, and in which order."""

from enum import Enum

import strawberry

from app.ledger import pages
from app.schema.described import enum_type, given, input_type
from app.schema.scalars import BigInt, Instant
from app.schema.types.enums import Direction
from app.schema.types.wanted_types import wanted_types


class EntryOrder(Enum):
    """The order of a history."""

    NEWEST_FIRST = "NEWEST_FIRST"
    OLDEST_FIRST = "OLDEST_FIRST"


enum_type(
    EntryOrder,
    "The order of a history.",
    {
        "NEWEST_FIRST": "From the last entry to the first.",
        "OLDEST_FIRST": "From the first entry to the last.",
    },
)


@input_type
class EntryFilter:
    """Which entries are wanted: those that meet every condition given."""

    types: list[str] | None = strawberry.field(
        default=strawberry.UNSET, description="Types of the transaction; any of them."
    )
    direction: Direction | None = strawberry.field(
        default=strawberry.UNSET, description="The side on which the entry stands."
    )
    posted_from: Instant | None = strawberry.field(
        default=strawberry.UNSET, description="Inclusive."
    )
    posted_before: Instant | None = strawberry.field(
        default=strawberry.UNSET, description="Exclusive."
    )
    min_minor_units: BigInt | None = strawberry.field(
        default=strawberry.UNSET, description="Compared with the size of the amount."
    )
    max_minor_units: BigInt | None = strawberry.field(
        default=strawberry.UNSET, description="Compared with the size of the amount."
    )

    def to_wanted(self) -> pages.EntryFilter:
        """Read the filter; raises BAD_REQUEST for a type that no transaction can have."""
        return pages.EntryFilter(
            types=wanted_types(self.types),
            direction=given(self.direction),
            posted_from=given(self.posted_from),
            posted_before=given(self.posted_before),
            smallest=given(self.min_minor_units),
            largest=given(self.max_minor_units),
        )

"""The ids of child accounts, which follow from their parent's: a held child, and the stripes of a hot account.

A posting must name every row that it locks before it has read any of them. So a child's id is computed and not looked
up: a name-based UUID (RFC 9562, version 5) in the name space of the parent.
"""

from functools import lru_cache
from typing import Final
from uuid import UUID, uuid5

STRIPES: Final = range(2, 257)
"""How many children a striped account may have."""

STRIPES_DEFAULT: Final = 16


@lru_cache(maxsize=65_536)
def held_child_id(parent_id: UUID) -> UUID:
    """Return the id of the account that holds what is set aside of the parent."""
    return uuid5(parent_id, "held")


@lru_cache(maxsize=1_024)
def stripe_ids(parent_id: UUID, stripes: int) -> tuple[UUID, ...]:
    """Return the ids of the children among which a striped account's money is spread, in the order of their numbers."""
    return tuple(uuid5(parent_id, f"stripe {number}") for number in range(stripes))

"""Pages of a list that is ordered by a key of its own: what is asked for, and what comes back.

A page is a range of keys and not an offset, so that it stays where it is while rows are added before it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from app.ledger.model import AccountKind, AccountStatus, Direction

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PageRequest(Generic[Key]):
    """Ask for at most `limit` items between two keys, both exclusive, in the list's own order."""

    limit: int
    after: Key | None = None
    before: Key | None = None
    backward: bool = False
    """Whether the items next to `before` are wanted and not those next to `after`."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items in the list's order, and whether there are more on either side."""

    items: tuple[Item, ...]
    has_next: bool
    has_previous: bool


def page_of(request: PageRequest[Key], found: list[Item]) -> Page[Item]:
    """Make a page of what was found when one item more than the limit was looked for, nearest first."""
    # A key that bounds the page was taken from the list, so what it stands for lies beyond the page.
    more = len(found) > request.limit
    items = tuple(found[: request.limit])
    beyond_before, beyond_after = request.before is not None, request.after is not None
    if request.backward:
        return Page(items[::-1], has_next=beyond_before, has_previous=more or beyond_after)
    return Page(items, has_next=more or beyond_before, has_previous=beyond_after)


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries of an account are wanted; sizes are in minor units without sign, instants UTC."""

    types: tuple[str, ...] | None = None
    direction: Direction | None = None
    posted_from: datetime | None = None
    posted_before: datetime | None = None
    smallest: int | None = None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class AccountFilter:
    """Which accounts are wanted."""

    code_prefix: str | None = None
    currency: str | None = None
    kind: AccountKind | None = None
    status: AccountStatus | None = None

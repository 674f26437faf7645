"""Pages of a list that is ordered by a key of its own: what is asked for, and what comes back.

A page is a range of keys and not an offset, so that it stays where it is while rows are added before it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar
from uuid import UUID

from app.ledger.model import AccountKind, AccountStatus, Direction, HoldPurpose, HoldStatus

COUNT_BOUND: Final = 10_000
"""A list is counted exactly only where that reads no more rows than this."""

_LOWEST_ID: Final = UUID(int=0)
_HIGHEST_ID: Final = UUID(int=2**128 - 1)

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


def span_of_ids(page: PageRequest[UUID], *, newest_first: bool) -> tuple[UUID, UUID]:
    """Return the ids that the page lies above and below, both exclusive, in a list that is ordered by them."""
    above, below = (page.before, page.after) if newest_first else (page.after, page.before)
    return _LOWEST_ID if above is None else above, _HIGHEST_ID if below is None else below


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
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactions are wanted; instants are UTC."""

    types: tuple[str, ...] | None = None
    posted_from: datetime | None = None
    """Inclusive."""
    posted_before: datetime | None = None
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class HoldFilter:
    """Which holds are wanted: those of one purpose, because withdrawals are a list of their own."""

    purpose: HoldPurpose
    status: HoldStatus | None = None

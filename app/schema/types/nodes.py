"""What all objects and lists have in common."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import strawberry

from app.ledger.pages import Item, Key, Page, PageRequest
from app.schema.described import interface_type, object_type
from app.schema.errors import bad_request

PAGE_LIMIT: Final = 100
PAGE_DEFAULT: Final = 20

First: TypeAlias = Annotated[
    int | None,
    strawberry.argument(
        description=f"The first items after `after`: 1 to {PAGE_LIMIT}, {PAGE_DEFAULT} unless given."
    ),
]
After: TypeAlias = Annotated[
    str | None, strawberry.argument(description="Only items after this cursor.")
]
Last: TypeAlias = Annotated[
    int | None,
    strawberry.argument(
        description=f"The last items before `before`, 1 to {PAGE_LIMIT}; not together with `first`."
    ),
]
Before: TypeAlias = Annotated[
    str | None, strawberry.argument(description="Only items before this cursor.")
]


@interface_type
class Node:
    """An object with an id of its own, by which it can be asked for again."""

    id: strawberry.ID = strawberry.field(description="Opaque and never reused.")


@object_type
class PageInfo:
    """Where a page stands in its list."""

    has_next_page: bool = strawberry.field(description="Whether items follow this page.")
    has_previous_page: bool = strawberry.field(description="Whether items precede this page.")
    start_cursor: str | None = strawberry.field(
        description="Cursor of the first item; null where there is none."
    )
    end_cursor: str | None = strawberry.field(
        description="Cursor of the last item; null where there is none."
    )

    @classmethod
    def of(cls, page: Page[Item], cursors: Sequence[str]) -> "PageInfo":
        """Say where the page stands; its items have these cursors."""
        return cls(
            has_next_page=page.has_next,
            has_previous_page=page.has_previous,
            start_cursor=cursors[0] if cursors else None,
            end_cursor=cursors[-1] if cursors else None,
        )


def page_request(
    first: int | None, last: int | None, *, after: Key | None, before: Key | None
) -> PageRequest[Key]:
    """Turn the arguments of a connection into a page; raises BAD_REQUEST where they contradict each other.

    Without `first` and `last`, the page is the one next to the cursor that is given.
    """
    if first is not None and last is not None:
        raise bad_request("Give `first` or `last`, not both.")
    limit = PAGE_DEFAULT if first is None else first
    if last is not None:
        limit = last
    if not 1 <= limit <= PAGE_LIMIT:
        raise bad_request(f"A page has 1 to {PAGE_LIMIT} items.")
    beside_before = first is None and before is not None and after is None
    backward = last is not None or beside_before
    return PageRequest(limit, after=after, before=before, backward=backward)

"""What all lists have in common: how a page of one is asked for, and how it is answered.

A list names its cursors by two functions: one writes the cursor of an item, the other reads where in the list it stands.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, Generic, Self, TypeAlias, TypeVar

import strawberry

from app.ledger.pages import Item, Key, Page, PageRequest
from app.ledger.reader import Reader
from app.schema.context import Info
from app.schema.described import given, object_type
from app.schema.errors import bad_request
from app.schema.scalars import BigInt

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

NodeT = TypeVar("NodeT")

Count: TypeAlias = Callable[[Reader], Awaitable[int | None]]
"""How many items a whole list has; None where that would have to read too many rows."""


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


@object_type
class Edge(Generic[NodeT]):
    """An item of a list, with its place."""

    cursor: str = strawberry.field(
        description="The item's place in the list; an entry's is also good as `after` of entryPosted."
    )
    node: NodeT = strawberry.field(description="The item.")


@object_type
class Connection(Generic[NodeT]):
    """A page of a list."""

    edges: list[Edge[NodeT]] = strawberry.field(description="The items with their cursors.")
    nodes: list[NodeT] = strawberry.field(description="The items alone.")
    page_info: PageInfo = strawberry.field(description="Where the page stands.")

    @classmethod
    def of(
        cls,
        page: Page[Item],
        show: Callable[[Item], NodeT],
        cursor: Callable[[Item], str],
    ) -> Self:
        """Show a page, item by item."""
        edges = [Edge(cursor=cursor(item), node=show(item)) for item in page.items]
        return cls(
            edges=edges,
            nodes=[edge.node for edge in edges],
            page_info=PageInfo.of(page, [edge.cursor for edge in edges]),
        )


@object_type
class CountedConnection(Connection[NodeT]):
    """A page of a list that can be counted."""

    count: strawberry.Private[Count | None] = None

    @classmethod
    def counted(
        cls,
        page: Page[Item],
        show: Callable[[Item], NodeT],
        cursor: Callable[[Item], str],
        count: Count,
    ) -> Self:
        """Show a page, item by item, of a list that is counted so where that is asked for."""
        connection = cls.of(page, show, cursor)
        connection.count = count
        return connection

    @strawberry.field(
        description="Null where an exact count would have to read more than 10,000 rows."
    )
    async def total_count(self, info: Info) -> BigInt | None:
        """Count the whole list."""
        count = None if self.count is None else await info.context.reads.once(self.count)
        return None if count is None else BigInt(count)


def page_request(
    first: int | None,
    after: str | None,
    last: int | None,
    before: str | None,
    *,
    read: Callable[[str], Key],
) -> PageRequest[Key]:
    """Turn the arguments of a connection into a page; `read` finds the place of a cursor, or raises INVALID_CURSOR.

    Raises BAD_REQUEST where the arguments contradict each other. Without `first` and `last`, the page is the one next to
    the cursor that is given.
    """
    first, after, last, before = given(first), given(after), given(last), given(before)
    if first is not None and last is not None:
        raise bad_request("Give `first` or `last`, not both.")
    limit = PAGE_DEFAULT if first is None else first
    if last is not None:
        limit = last
    if not 1 <= limit <= PAGE_LIMIT:
        raise bad_request(f"A page has 1 to {PAGE_LIMIT} items.")
    beside_before = first is None and before is not None and after is None
    return PageRequest(
        limit,
        after=None if after is None else read(after),
        before=None if before is None else read(before),
        backward=last is not None or beside_before,
    )

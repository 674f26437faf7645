"""Lists that are read page by page, as a client of the ledger does."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from app.ledger.pages import Page, PageRequest


class Named(Protocol):
    """What stands in a list by its id."""

    @property
    def id(self) -> UUID: ...


Listed = TypeVar("Listed", bound=Named)


async def walk(
    read: Callable[[PageRequest[UUID]], Awaitable[Page[Listed]]], limit: int, *, backward: bool
) -> Sequence[Listed]:
    """Go from page to page until there is none."""
    met: list[Listed] = []
    request: PageRequest[UUID] = PageRequest(limit, backward=backward)
    while True:
        page = await read(request)
        met = [*page.items, *met] if backward else [*met, *page.items]
        assert len(page.items) <= limit
        if not (page.has_previous if backward else page.has_next):
            return met
        request = (
            PageRequest(limit, before=page.items[0].id, backward=True)
            if backward
            else PageRequest(limit, after=page.items[-1].id)
        )

"""Queries: what there is, as far as the caller may see it. What isn't the caller's looks exactly like what isn't."""

from app.schema.described import object_type
from app.schema.queries.lists import ListQueries
from app.schema.queries.single import SingleQueries

__all__ = ["Query"]


@object_type
class Query(SingleQueries, ListQueries):
    """What can be asked."""

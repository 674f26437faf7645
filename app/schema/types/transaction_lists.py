"""The list of all transactions: which are wanted, and a page of them."""

import strawberry

from app.ledger import pages
from app.schema.described import given, input_type, object_type
from app.schema.scalars import Instant
from app.schema.types.connections import Connection
from app.schema.types.objects import Transaction
from app.schema.types.wanted_types import wanted_types


@input_type
class TransactionFilter:
    """Which transactions are wanted: those that meet every condition given."""

    types: list[str] | None = strawberry.field(
        default=strawberry.UNSET, description="Types of the transaction; any of them."
    )
    posted_from: Instant | None = strawberry.field(
        default=strawberry.UNSET, description="Inclusive."
    )
    posted_before: Instant | None = strawberry.field(
        default=strawberry.UNSET, description="Exclusive."
    )

    def to_wanted(self) -> pages.TransactionFilter:
        """Read the filter; raises BAD_REQUEST for a type that no transaction can have."""
        return pages.TransactionFilter(
            types=wanted_types(self.types),
            posted_from=given(self.posted_from),
            posted_before=given(self.posted_before),
        )


@object_type
class TransactionConnection(Connection[Transaction]):
    """A page of transactions, newest first."""

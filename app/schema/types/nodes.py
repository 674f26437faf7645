"""What all objects have in common."""

import strawberry

from app.schema.described import interface_type


@interface_type
class Node:
    """An object with an id of its own, by which it can be asked for again."""

    id: strawberry.ID = strawberry.field(description="Opaque and never reused.")

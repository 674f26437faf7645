"""What an operation has at hand: the services of the process, who asks, and the reads that belong to this operation."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import strawberry

from app.ledger.model import Caller
from app.ledger.reader import Reader
from app.ledger.service import Ledger
from app.relay.hub import Hub
from app.schema.errors import too_complex, unauthenticated
from app.schema.reads import Reads
from app.tokens import Claims, Tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """What the two doors allow; sizes in bytes, times in seconds."""

    graphiql: bool = True
    """Whether a browser is shown GraphiQL."""
    introspection: bool = True
    """Whether clients may ask for the schema, and are told of names that resemble a wrong one."""
    body_bytes: int = 4_194_304
    """Largest body of an HTTP request."""
    sockets: int = 5_000
    """Open WebSockets of the process."""
    subscriptions_per_socket: int = 50
    """Live operations on one WebSocket."""
    poll_seconds: float = 15.0
    """How often a live feed looks at the database although nothing woke it."""
    init_seconds: float = 10.0
    """How long a new WebSocket may wait with its first message."""
    send_seconds: float = 10.0
    """How long a client may leave a message unread before its WebSocket is closed."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the schema works with, put together once for each process."""

    ledger: Ledger
    reader: Reader
    hub: Hub
    tokens: Tokens
    limits: Limits


@dataclass(slots=True)
class Context:
    """The state of one operation; a WebSocket makes a new one for each."""

    services: Services
    claims: Claims | None
    reads: Reads = field(init=False)
    operation_type: str = "unknown"
    """For the metrics: query, mutation, subscription, or unknown where it couldn't be read."""
    carried_out: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What mutation fields of this request have done so far, to be told where a later one fails."""

    items_left: int | None = None
    """How many items of lists of unforeseen length may still be read; None where that isn't limited."""

    def __post_init__(self) -> None:
        caller = Caller("", frozenset()) if self.claims is None else self.claims.caller
        self.reads = Reads(self.services.reader, caller)

    @property
    def caller(self) -> Caller:
        """Who asks; raises UNAUTHENTICATED where nobody has proved to be anybody."""
        if self.claims is None:
            raise unauthenticated()
        return self.claims.caller

    def spend_items(self, count: int) -> None:
        """Account for items of a list whose length nobody knew; raises QUERY_TOO_COMPLEX where they are too many."""
        if self.items_left is None:
            return
        self.items_left -= count
        if self.items_left < 0:
            raise too_complex("The transactions of the answer have more legs than it may show.")


Info: TypeAlias = strawberry.Info[Context, None]

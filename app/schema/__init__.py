"""GraphQL: the API, and the two doors through which it is reached."""

from collections.abc import Sequence

from starlette.routing import BaseRoute, Route, WebSocketRoute

from app.schema.context import Limits, Services
from app.schema.ledger_schema import LedgerSchema, build_schema
from app.schema.sockets import Sockets
from app.schema.view import GraphQLView

__all__ = ["LedgerSchema", "Limits", "Services", "build_schema", "graphql_routes"]


def graphql_routes(services: Services, path: str = "/graphql") -> Sequence[BaseRoute]:
    """Serve the API on one path: queries and mutations over HTTP, subscriptions over WebSocket."""
    schema = build_schema(introspection=services.limits.introspection)
    return (
        Route(path, GraphQLView(schema, services)),
        WebSocketRoute(path, Sockets(schema, services)),
    )

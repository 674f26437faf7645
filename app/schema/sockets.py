"""The WebSocket door: live subscriptions over graphql-transport-ws, and nothing else.

Shape. A WebSocket is a task group: one task reads, each operation is a task, one waits for the token's end. The first of
them that finds a reason to close raises it; then all are cancelled, what they hold is freed, and only then is the client
told. So there is one way out, whatever went wrong.

Bounds. A process has a number of sockets and each of them a number of operations. A client that doesn't introduce itself
is closed after a while, and so is one that lets a message lie unread: what it has missed it gets with its cursor when it
comes back.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final

import structlog
from graphql import GraphQLError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from strawberry.types.execution import ExecutionResult
from strawberry.types.graphql import OperationType
from strawberry.utils.aio import aclosing

from app.schema.auth import authenticate, authorization_of
from app.schema.context import Context, Services
from app.schema.errors import (
    RETRY_AFTER_SECONDS,
    ApiError,
    internal,
    present,
    rate_limited,
    unauthenticated,
)
from app.schema.ledger_schema import LedgerSchema
from app.schema.protocol import (
    SUBPROTOCOL,
    CloseCode,
    Complete,
    ConnectionInit,
    Ping,
    Pong,
    SocketClosedError,
    Subscribe,
    read_message,
)
from app.schema.requests import GraphQLRequest, encode_json
from app.tokens import Claims

log = structlog.get_logger(__name__)

_ALLOWED: Final = frozenset({OperationType.SUBSCRIPTION})

_LONGEST_SLEEP_SECONDS: Final = 60.0
"""How often a socket looks at the clock for its token's end: the clock may be set while it sleeps."""


_REASON_BYTES: Final = 123
"""The room that a close frame has for its reason."""


class Sockets:
    """An ASGI application for one path: all WebSockets of the process."""

    def __init__(self, schema: LedgerSchema, services: Services) -> None:
        """Serve the subscriptions of the schema."""
        self._schema = schema
        self._services = services
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket until it is closed."""
        websocket = WebSocket(scope, receive, send)
        if self._open >= self._services.limits.sockets:
            await websocket.send_denial_response(
                Response(status_code=503, headers={"retry-after": str(RETRY_AFTER_SECONDS)})
            )
            return
        self._open += 1
        try:
            await _Socket(websocket, self._schema, self._services).serve()
        finally:
            self._open -= 1


class _Socket:
    """One WebSocket with its state; `serve` is its whole life."""

    def __init__(self, websocket: WebSocket, schema: LedgerSchema, services: Services) -> None:
        self._websocket = websocket
        self._schema = schema
        self._services = services
        self._tasks = asyncio.TaskGroup()
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._introduced = False
        self._claims: Claims | None = None

    async def serve(self) -> None:
        websocket = self._websocket
        if SUBPROTOCOL not in websocket.scope["subprotocols"]:
            await websocket.accept()
            await self._close(
                SocketClosedError(
                    CloseCode.SUBPROTOCOL_NOT_ACCEPTABLE, "Subprotocol not acceptable"
                )
            )
            return
        await websocket.accept(SUBPROTOCOL)
        reason = SocketClosedError()
        try:
            async with self._tasks:
                self._tasks.create_task(self._wait_for_introduction())
                await self._read()
        except* SocketClosedError as group:
            reason = _first_of(group)
        except* Exception:
            log.exception("a WebSocket failed")
            reason = SocketClosedError(CloseCode.TRY_AGAIN_LATER, "Try again later")
        await self._close(reason)

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise SocketClosedError
            await self._handle(message.get("text"))
            # Frames that arrived together are read without waiting; the rest of the process has its turn between them.
            await asyncio.sleep(0)

    async def _handle(self, text: str | None) -> None:
        match read_message(text):
            case ConnectionInit(payload):
                await self._introduce(payload)
            case Ping():
                await self._send({"type": "pong"})
            case Pong():
                pass
            case Subscribe(id, request):
                await self._subscribe(id, request)
            case Complete(id):
                operation = self._operations.pop(id, None)
                if operation is not None:
                    operation.cancel()

    async def _introduce(self, payload: Mapping[str, Any]) -> None:
        if self._introduced:
            raise SocketClosedError(
                CloseCode.TOO_MANY_INITIALISATIONS, "Too many initialisation requests"
            )
        self._introduced = True
        try:
            authorization = authorization_of(self._websocket.headers, payload)
            if authorization is None:
                raise unauthenticated()
            self._claims = authenticate(self._services.tokens, authorization)
        except ApiError:
            raise SocketClosedError(CloseCode.FORBIDDEN, "Forbidden") from None
        self._tasks.create_task(self._wait_for_expiry(self._claims))
        await self._send({"type": "connection_ack"})

    async def _subscribe(self, operation_id: str, request: GraphQLRequest) -> None:
        if self._claims is None:
            raise SocketClosedError(CloseCode.UNAUTHORIZED, "Unauthorized")
        if operation_id in self._operations:
            raise SocketClosedError(
                CloseCode.OPERATION_EXISTS, f"Subscriber for {operation_id} already exists"
            )
        if len(self._operations) >= self._services.limits.subscriptions_per_socket:
            error = rate_limited("The WebSocket has as many subscriptions as it may have.")
            await self._fail(operation_id, [error])
            return
        self._operations[operation_id] = self._tasks.create_task(
            self._operate(operation_id, request, Context(self._services, self._claims))
        )

    async def _operate(self, operation_id: str, request: GraphQLRequest, context: Context) -> None:
        """Run an operation to its end and tell it; its id is free again before the client hears of it."""
        errors: list[GraphQLError] = []
        try:
            errors = await self._stream(operation_id, request, context)
        except GraphQLError as error:
            # What an extension raises comes out of Strawberry's stream as it is.
            errors = [error]
        except SocketClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - a failure of ours ends this operation and no other
            errors = [internal(error)]
        finally:
            if self._operations.get(operation_id) is asyncio.current_task():
                del self._operations[operation_id]
        if errors:
            await self._fail(operation_id, errors)
        else:
            await self._send({"id": operation_id, "type": "complete"})

    async def _stream(
        self, operation_id: str, request: GraphQLRequest, context: Context
    ) -> list[GraphQLError]:
        """Send results until there are no more; returns the errors of the one that could not be told whole.

        A feed doesn't go on after such a result: its reader would miss an event and not know. It ends, and the reader
        takes it up again from the last cursor.
        """
        results = await self._schema.stream(
            request.query,
            variable_values=request.variables,
            context_value=context,
            operation_name=request.operation_name,
            allowed_operation_types=_ALLOWED,
        )
        async with aclosing(results):
            async for result in results:
                # The other kinds of results belong to incremental delivery, which is off.
                if not isinstance(result, ExecutionResult):
                    raise TypeError(result)
                if result.errors:
                    return result.errors
                await self._send(
                    {"id": operation_id, "type": "next", "payload": {"data": result.data}}
                )
        return []

    async def _fail(self, operation_id: str, errors: list[GraphQLError]) -> None:
        await self._send({"id": operation_id, "type": "error", "payload": present(errors)})

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._services.limits.send_seconds):
                await self._websocket.send_text(encode_json(message).decode())
        except TimeoutError:
            raise SocketClosedError(CloseCode.TRY_AGAIN_LATER, "Messages lie unread") from None
        except (WebSocketDisconnect, RuntimeError):
            # Starlette raises a RuntimeError where the WebSocket was closed a moment ago.
            raise SocketClosedError from None

    async def _close(self, reason: SocketClosedError) -> None:
        if reason.code is None:
            return
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(self._services.limits.send_seconds):
                text = reason.reason.encode()[:_REASON_BYTES].decode(errors="ignore")
                await self._websocket.close(reason.code, text)

    async def _wait_for_introduction(self) -> None:
        await asyncio.sleep(self._services.limits.init_seconds)
        if not self._introduced:
            raise SocketClosedError(
                CloseCode.INITIALISATION_TIMEOUT, "Connection initialisation timeout"
            )

    async def _wait_for_expiry(self, claims: Claims) -> None:
        while True:
            left = claims.expires_at.timestamp() - time.time()
            if left <= 0:
                raise SocketClosedError(CloseCode.FORBIDDEN, "The token has expired")
            await asyncio.sleep(min(left, _LONGEST_SLEEP_SECONDS))


def _first_of(group: BaseExceptionGroup[SocketClosedError]) -> SocketClosedError:
    """Find the reason that came first, among those of all tasks."""
    for error in group.exceptions:
        found = _first_of(error) if isinstance(error, BaseExceptionGroup) else error
        if found.code is not None:
            return found
    return SocketClosedError()

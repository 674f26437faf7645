"""What is done for every request, whatever it asks for: it gets a name, and an answer even where it is broken off."""

import asyncio
from http import HTTPStatus
from typing import Final
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger(__name__)

HEADER: Final = "x-request-id"
_LENGTH_MAX: Final = 128


class RequestIds:
    """Takes the name that a proxy has given to a request, or makes one; HTTP and WebSocket alike.

    It is in every line that the request logs, and in the answer's header `x-request-id`.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Bind the name to the log for as long as the request lasts."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        request_id = _given(Headers(scope=scope)) or uuid4().hex

        async def send_with_id(message: Message) -> None:
            if message["type"] in {"http.response.start", "websocket.accept"}:
                message.setdefault("headers", [])
                MutableHeaders(scope=message).append(HEADER, request_id)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._app(scope, receive, send_with_id)


class BrokenOff:
    """Answers requests whose time to finish is over because the process stops, in the form of the API.

    Whether a posting among them is booked is unknown, and sending it again under its key settles it, as after any 503.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 503 where the request's task is cancelled before it has begun to answer."""
        answering = False

        async def send_and_note(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:
            if scope["type"] != "http" or answering:
                raise
            log.warning("a request was broken off")
            await _stopping()(scope, receive, send)


def _stopping() -> JSONResponse:
    message = "The server is stopping. Send the request again with the same idempotency key."
    return JSONResponse(
        {"errors": [{"message": message, "extensions": {"code": "UNAVAILABLE"}}]},
        HTTPStatus.SERVICE_UNAVAILABLE,
        {"retry-after": "1"},
    )


def _given(headers: Headers) -> str | None:
    """Read the name that came with the request, unless it could forge a line of the log."""
    name = headers.get(HEADER, "")
    well_formed = 0 < len(name) <= _LENGTH_MAX and name.isascii() and name.isprintable()
    return name if well_formed else None

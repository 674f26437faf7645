"""Messages of the protocol graphql-transport-ws: reading what a client sends, and the codes that close a WebSocket.

The codes are those of the protocol. The common client tries again after 4403, 1012 and 1013 and never after 4400, 4401,
4409 and 4429; so an expired token, for which it can get a new one, is 4403.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeAlias, cast

from app.schema.errors import ApiError
from app.schema.requests import GraphQLRequest, decode_json

SUBPROTOCOL: Final = "graphql-transport-ws"
OPERATION_ID_LIMIT: Final = 128


class CloseCode(IntEnum):
    """Why a WebSocket is closed by the server."""

    TRY_AGAIN_LATER = 1013
    BAD_REQUEST = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    SUBPROTOCOL_NOT_ACCEPTABLE = 4406
    INITIALISATION_TIMEOUT = 4408
    OPERATION_EXISTS = 4409
    TOO_MANY_INITIALISATIONS = 4429


class SocketClosedError(Exception):
    """The WebSocket is to be closed with a code, or has been closed by the client where the code is None."""

    def __init__(self, code: CloseCode | None = None, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ConnectionInit:
    """The client introduces itself."""

    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ping:
    """The client wants to know whether anybody is there."""


@dataclass(frozen=True, slots=True)
class Pong:
    """The client is there."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The client begins an operation."""

    id: str
    request: GraphQLRequest


@dataclass(frozen=True, slots=True)
class Complete:
    """The client ends an operation."""

    id: str


ClientMessage: TypeAlias = ConnectionInit | Ping | Pong | Subscribe | Complete


def read_message(text: str | None) -> ClientMessage:
    """Read a frame (None stands for a binary one); raises SocketClosedError with 4400 for what the protocol doesn't have."""
    if text is None:
        raise _bad("The message must be text")
    try:
        message = decode_json(text)
        if not isinstance(message, dict):
            raise _bad("The message must be a JSON object")
        return _read(cast("dict[str, Any]", message))
    except ApiError as error:
        raise _bad(error.message) from None


def _read(message: dict[str, Any]) -> ClientMessage:
    match message:
        case {"type": "connection_init"}:
            payload = message.get("payload")
            if not isinstance(payload, dict | None):
                raise _bad("The payload of connection_init must be an object")
            return ConnectionInit(cast("dict[str, Any]", payload or {}))
        case {"type": "ping"}:
            return Ping()
        case {"type": "pong"}:
            return Pong()
        case {"type": "subscribe"}:
            return Subscribe(_operation_id(message), GraphQLRequest.of(message.get("payload")))
        case {"type": "complete"}:
            return Complete(_operation_id(message))
        case _:
            raise _bad("The message has no known type")


def _operation_id(message: dict[str, Any]) -> str:
    operation_id = message.get("id")
    if not isinstance(operation_id, str) or not 0 < len(operation_id) <= OPERATION_ID_LIMIT:
        raise _bad(f"The id must be a string of 1 to {OPERATION_ID_LIMIT} characters")
    return operation_id


def _bad(reason: str) -> SocketClosedError:
    return SocketClosedError(CloseCode.BAD_REQUEST, reason)

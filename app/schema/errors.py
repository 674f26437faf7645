"""Top-level errors: each has a stable `extensions.code`, and nothing of what went wrong inside ever reaches a client.

Refusals of business rules are not here; they are data of a payload. What is here either the client can put right (its
token, its request) or nobody but us can: then the client gets a reference, under which the log has the rest.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final
from uuid import uuid4

import structlog
from graphql import GraphQLError, GraphQLFormattedError
from strawberry.exceptions import MissingQueryError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError

from app.database import DatabaseUnavailableError
from app.ledger.errors import LedgerUnavailableError
from app.ledger.model import MissingScopeError

log = structlog.get_logger(__name__)

RETRY_AFTER_SECONDS: Final = 1


class ApiErrorCode(StrEnum):
    """The values of `extensions.code`."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    BAD_REQUEST = "BAD_REQUEST"
    QUERY_TOO_COMPLEX = "QUERY_TOO_COMPLEX"
    INVALID_CURSOR = "INVALID_CURSOR"
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    INTERNAL = "INTERNAL"


class ApiError(GraphQLError):
    """An error that is shown to the client as it is."""

    def __init__(self, code: ApiErrorCode, message: str, **details: Any) -> None:
        super().__init__(message, extensions={"code": code, **details})
        self.code: Final = code


def unauthenticated(message: str = "A valid bearer token is needed.") -> ApiError:
    """Say that the request has no token, or one that isn't valid (any more)."""
    return ApiError(ApiErrorCode.UNAUTHENTICATED, message)


def bad_request(message: str) -> ApiError:
    """Say that the request can't be understood as it stands."""
    return ApiError(ApiErrorCode.BAD_REQUEST, message)


def too_complex(message: str) -> ApiError:
    """Say that the operation asks for more than one operation may."""
    return ApiError(ApiErrorCode.QUERY_TOO_COMPLEX, message)


def invalid_cursor() -> ApiError:
    """Say that the cursor isn't one of this list."""
    return ApiError(ApiErrorCode.INVALID_CURSOR, "The cursor is not one of this list.")


def account_not_found() -> ApiError:
    """Say that there is no such account, or that it isn't the caller's: the two look the same."""
    return ApiError(ApiErrorCode.ACCOUNT_NOT_FOUND, "There is no such account.")


def rate_limited(message: str) -> ApiError:
    """Say that the caller has as much under way as one may have."""
    return ApiError(ApiErrorCode.RATE_LIMITED, message)


def code_of(formatted: GraphQLFormattedError) -> str:
    """Read the code of an error that was made by `present`."""
    return str(formatted.get("extensions", {})["code"])


def present(errors: Sequence[GraphQLError]) -> list[GraphQLFormattedError]:
    """Write errors for the client; what is our fault is logged here, and nothing else is."""
    return [_present(error) for error in errors]


def internal(error: BaseException) -> ApiError:
    """Hide a failure of ours behind a reference, under which it is logged."""
    reference = uuid4().hex
    log.error("internal error", reference=reference, exc_info=error)
    return ApiError(ApiErrorCode.INTERNAL, "Something went wrong on our side.", reference=reference)


def _present(error: GraphQLError) -> GraphQLFormattedError:
    if "code" in (error.extensions or {}):
        return error.formatted
    shown = _translate(error)
    formatted = error.formatted
    formatted["message"] = shown.message
    formatted["extensions"] = shown.extensions or {}
    return formatted


def _translate(error: GraphQLError) -> ApiError:
    cause = _cause_of(error)
    match cause:
        case MissingScopeError():
            scopes = [scope.value for scope in cause.scopes]
            return ApiError(
                ApiErrorCode.FORBIDDEN,
                f"The token lacks a scope that this needs: {' or '.join(scopes)}.",
                scopes=scopes,
            )
        case CannotGetOperationTypeError() | InvalidOperationTypeError() | MissingQueryError():
            return bad_request(error.message)
        case None:
            # Syntax, validation and coercion: the message speaks of the client's own document.
            return bad_request(error.message)
        case _ if _is_unavailable(cause):
            return unavailable()
        case _:
            return internal(cause)


def unavailable() -> ApiError:
    """Say that the database or a place in the queue couldn't be had in time."""
    return ApiError(
        ApiErrorCode.UNAVAILABLE,
        "The ledger is busy or out of reach; send the same request again.",
        retryAfterSeconds=RETRY_AFTER_SECONDS,
    )


def _cause_of(error: GraphQLError) -> BaseException | None:
    """Find what lies beneath an error that the executor has wrapped, maybe several times."""
    cause: BaseException | None = error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause


def _is_unavailable(cause: BaseException) -> bool:
    return isinstance(cause, DatabaseUnavailableError | LedgerUnavailableError)

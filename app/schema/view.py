"""The HTTP door: one query or mutation in, one answer out, as the specification of GraphQL over HTTP has it.

A client that goes away cancels nothing: its body is read whole before anything is executed, and what is executed then
runs to its end, because a mutation may be half way to its commit.
"""

import time
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send
from strawberry.exceptions import MissingQueryError
from strawberry.http.ides import get_graphql_ide_html
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from app import metrics
from app.schema.auth import HEADER, authenticate
from app.schema.context import Context, Services
from app.schema.errors import (
    RETRY_AFTER_SECONDS,
    ApiError,
    ApiErrorCode,
    bad_request,
    code_of,
    internal,
    present,
)
from app.schema.ledger_schema import LedgerSchema
from app.schema.media import GRAPHQL_RESPONSE, JSON, is_json, negotiate, wants_page
from app.schema.requests import GraphQLRequest, decode_json, encode_json

_ALLOWED: Final = {
    # A link, a prefetch or a cache may repeat a GET whenever it likes.
    "GET": frozenset({OperationType.QUERY}),
    "POST": frozenset({OperationType.QUERY, OperationType.MUTATION}),
}

_STATUS_OF_NOTHING: Final = {
    ApiErrorCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ApiErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ApiErrorCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of an answer in which nothing succeeded, whatever media type the client accepts: proxies understand it."""


class _DoorError(Exception):
    """The request is no GraphQL request at all; answered with its status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class GraphQLView:
    """An ASGI application for one path."""

    def __init__(self, schema: LedgerSchema, services: Services) -> None:
        """Serve the schema."""
        self._schema = schema
        self._services = services
        self._page = get_graphql_ide_html("graphiql") if services.limits.graphiql else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if self._page is not None and _asks_for_page(request):
            return HTMLResponse(self._page)
        media = negotiate(request.headers.get("accept"))
        try:
            return await self._serve(request, media)
        except _DoorError as error:
            answer = {"errors": present([bad_request(error.message)])}
            return _answer(media or JSON, answer, error.status)

    async def _serve(self, request: Request, media: str | None) -> Response:
        if media is None:
            raise _DoorError(
                HTTPStatus.NOT_ACCEPTABLE, f"Answers are {GRAPHQL_RESPONSE} or {JSON}."
            )
        match request.method:
            case "POST":
                return await self._execute(request, await self._body(request), media)
            case "GET":
                return await self._execute(request, None, media)
            case _:
                raise _DoorError(HTTPStatus.METHOD_NOT_ALLOWED, "Send operations with POST.")

    async def _body(self, request: Request) -> bytes:
        """Read the body whole, as far as it may be read at all."""
        if not is_json(request.headers.get("content-type")):
            raise _DoorError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The request must be {JSON} in UTF-8."
            )
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._services.limits.body_bytes:
                raise _DoorError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"The request may have {self._services.limits.body_bytes} bytes.",
                )
        return bytes(body)

    async def _execute(self, request: Request, body: bytes | None, media: str) -> Response:
        began = time.perf_counter()
        context = Context(self._services, None)
        try:
            parameters = _query_parameters(request) if body is None else decode_json(body)
            operation = GraphQLRequest.of(parameters)
            authorization = request.headers.get(HEADER)
            if authorization is not None:
                claims = authenticate(self._services.tokens, authorization)
                context = Context(self._services, claims)
            result = await self._run(operation, context, request.method)
        except ApiError as error:
            # Not even a request: its status doesn't depend on the media type.
            status = _STATUS_OF_NOTHING.get(error.code, HTTPStatus.BAD_REQUEST)
            response = _answer(media, {"errors": present([error])}, status)
            outcome: str = error.code
        else:
            response, outcome = _respond_with(result, context, media)
        metrics.REQUESTS.labels(context.operation_type, outcome.lower()).observe(
            time.perf_counter() - began
        )
        return response

    async def _run(
        self, operation: GraphQLRequest, context: Context, method: str
    ) -> ExecutionResult:
        try:
            return await self._schema.execute(
                operation.query,
                variable_values=operation.variables,
                context_value=context,
                operation_name=operation.operation_name,
                allowed_operation_types=_ALLOWED[method],
            )
        except MissingQueryError:
            raise bad_request("The document has no operation.") from None
        except CannotGetOperationTypeError as error:
            raise bad_request(error.as_http_error_reason()) from None
        except InvalidOperationTypeError as error:
            if error.operation_type is OperationType.SUBSCRIPTION:
                raise bad_request("Subscriptions are served over WebSocket.") from None
            raise _DoorError(HTTPStatus.METHOD_NOT_ALLOWED, "Send mutations with POST.") from None
        except Exception as error:  # noqa: BLE001 - the last net: nothing of ours may reach a client
            return ExecutionResult(data=None, errors=[internal(error)])


def _asks_for_page(request: Request) -> bool:
    """Tell whether a person opens the address in a browser."""
    return (
        request.method == "GET"
        and "query" not in request.query_params
        and wants_page(request.headers.get("accept"))
    )


def _query_parameters(request: Request) -> dict[str, object]:
    """Read the parameters of a GET; those that are objects are JSON in the address."""
    parameters: dict[str, object] = dict(request.query_params)
    for name in ("variables", "extensions"):
        if name in parameters:
            parameters[name] = decode_json(request.query_params[name])
    return parameters


def _respond_with(result: ExecutionResult, context: Context, media: str) -> tuple[Response, str]:
    """Write the result of an operation, and name its outcome for the metrics."""
    errors = present(result.errors or [])
    codes = [code_of(error) for error in errors]
    answer: dict[str, Any] = {}
    if result.data is not None or any(error.path is not None for error in result.errors or []):
        answer["data"] = result.data
    if errors:
        answer["errors"] = errors
    if errors and context.carried_out:
        answer["extensions"] = {"carriedOut": context.carried_out}
    status = _status(answer, codes, media)
    return _answer(media, answer, status), codes[0] if codes else "ok"


def _status(answer: dict[str, Any], codes: list[str], media: str) -> HTTPStatus:
    data: dict[str, object] = answer.get("data") or {}
    succeeded = "extensions" in answer or any(value is not None for value in data.values())
    if not succeeded:
        for code, status in _STATUS_OF_NOTHING.items():
            if code in codes:
                return status
    if "data" in answer:
        return HTTPStatus.OK
    if ApiErrorCode.INTERNAL in codes:
        return HTTPStatus.INTERNAL_SERVER_ERROR
    # A client that reads plain JSON takes another status for a fault of the way and doesn't look at the answer.
    return HTTPStatus.BAD_REQUEST if media == GRAPHQL_RESPONSE else HTTPStatus.OK


def _answer(media: str, answer: dict[str, Any], status: HTTPStatus) -> Response:
    more: dict[str, str] = {}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        more["allow"] = "GET, POST"
    if status == HTTPStatus.UNAUTHORIZED:
        more["www-authenticate"] = "Bearer"
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        more["retry-after"] = str(RETRY_AFTER_SECONDS)
    return Response(
        encode_json(answer),
        status,
        {
            "content-type": f"{media}; charset=utf-8",
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            **more,
        },
    )

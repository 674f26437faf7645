"""How a careful client speaks to Saldo: it retries what may have got lost, under the key that it first used.

A request that fails on the way, or that the server turns away for now (429, 503), is sent again after a pause that grows. That
is safe for anything that carries an idempotency key, and reads need none.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import httpx
from gql import Client, gql
from gql.transport.exceptions import TransportError
from gql.transport.websockets import WebsocketsTransport

from app.demo.documents import WHO_AM_I

Json: TypeAlias = dict[str, Any]

_ATTEMPTS: Final = 8
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 15.0
_TRY_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class ServerTroubleError(Exception):
    """The server can't be reached, doesn't know us or broke its promises; the message is for the person at the screen."""


class Api:
    """Sends operations to one server, each with the token of whoever acts."""

    def __init__(self, url: str, *, connections: int) -> None:
        """Take the server's address without a path, and how many requests may be under way at once."""
        self.url = url.rstrip("/")
        self.retries = 0
        """How many requests were sent again because their answer got lost or the server was busy."""
        self._http = httpx.AsyncClient(
            base_url=self.url,
            timeout=_ANSWER_SECONDS,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            # A proxy that the environment names has no business between us and our own server.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)

    async def check_served(self) -> None:
        """Raise ServerTroubleError unless a Saldo that is ready answers at the address."""
        try:
            answer = await self._http.get("/readyz")
        except httpx.HTTPError as error:
            raise ServerTroubleError(
                f"Nobody serves at {self.url}. Start a server with `saldo serve`; one on another port is "
                "found with SALDO_PORT or --url."
            ) from error
        if answer.status_code != HTTPStatus.OK:
            raise ServerTroubleError(
                f"The server at {self.url} isn't ready: its /readyz answers {answer.status_code}."
            )

    async def check_known(self, token: str) -> None:
        """Raise ServerTroubleError unless the server accepts the token."""
        await self.execute(token, WHO_AM_I, {})

    async def execute(self, token: str, document: str, variables: Mapping[str, Any]) -> Json:
        """Run a query or mutation and return its only field; raises ServerTroubleError for a top-level error."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        trouble = ""
        for attempt in range(_ATTEMPTS):
            if attempt > 0:
                self.retries += 1
                await asyncio.sleep(pause_seconds * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
                pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            try:
                answer = await self._http.post(
                    "/graphql",
                    json={"query": document, "variables": variables},
                    headers={"authorization": f"Bearer {token}"},
                )
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__} {error}".strip()
                continue
            if answer.status_code in _TRY_LATER:
                trouble = f"status {answer.status_code}"
                continue
            return _only_field(answer)
        raise ServerTroubleError(f"{self.url} gave no answer in {_ATTEMPTS} attempts: {trouble}.")

    async def live(
        self, token: str, document: str, variables: Mapping[str, Any]
    ) -> AsyncGenerator[Json]:
        """Subscribe over graphql-transport-ws and yield the only field of each message."""
        transport = WebsocketsTransport(
            self.url.replace("http", "ws", 1) + "/graphql",
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
            init_payload={"authorization": f"Bearer {token}"},
            connect_args={"proxy": None},
        )
        request = gql(document)
        request.variable_values = dict(variables)
        try:
            async with (
                Client(transport=transport) as session,
                aclosing(session.subscribe(request)) as messages,
            ):
                async for message in messages:
                    (field,) = message.values()
                    yield field
        except (TransportError, OSError) as error:
            raise ServerTroubleError(f"The subscription at {self.url} broke: {error}") from error


def _only_field(answer: httpx.Response) -> Json:
    try:
        body: Json = answer.json()
    except ValueError as error:
        raise ServerTroubleError(
            f"{answer.url} answers {answer.status_code} and no JSON; is it Saldo?"
        ) from error
    errors: list[Json] = body.get("errors") or []
    if errors:
        code = errors[0].get("extensions", {}).get("code")
        if code == "UNAUTHENTICATED":
            raise ServerTroubleError(
                "The server doesn't know the secret that our tokens are signed with. Run the demo in the server's "
                "folder, or give it the server's secret with --secret."
            )
        raise ServerTroubleError(f"The server answers {code}: {errors[0].get('message')}")
    (field,) = body["data"].values()
    return field

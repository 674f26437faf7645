"""The HTTP door: what it lets in, and in which words it answers."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import orjson
import pytest

from app.schema import Limits
from tests.schema.server import ApiServer, running_server
from tests.support.ledger import metric
from tests.support.postgres import TestDatabase

GRAPHQL_RESPONSE = "application/graphql-response+json"


async def send(server: ApiServer, body: bytes, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await server.http.post(
        "/graphql", content=body, headers={"content-type": "application/json", **named}
    )


MEDIA: Final = (
    (GRAPHQL_RESPONSE, GRAPHQL_RESPONSE),
    ("application/json", "application/json"),
    ("*/*", "application/json"),
    ("application/*;q=0.5, text/html", "application/json"),
    (f"application/json;q=0.5, {GRAPHQL_RESPONSE}", GRAPHQL_RESPONSE),
    (f"{GRAPHQL_RESPONSE};q=0.1, application/json;q=0.9", "application/json"),
)


async def test_the_client_chooses_the_media_type(server: ApiServer) -> None:
    for accept, media in MEDIA:
        response = await server.post("{ __typename }", headers={"accept": accept})

        assert response.status_code == 200
        assert response.headers["content-type"] == f"{media}; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"


async def test_a_request_error_is_a_400_to_who_speaks_graphql(server: ApiServer) -> None:
    for document in ("{", "{ nothing }", "query ($id: ID!) { account(id: $id) { id } }"):
        told = await server.post(
            document, token=server.token(), headers={"accept": GRAPHQL_RESPONSE}
        )
        plain = await server.post(document, token=server.token())

        assert (told.status_code, plain.status_code) == (400, 200)
        assert "data" not in told.json()
        assert told.json() == plain.json()


async def test_what_is_no_request_is_refused_with_its_status(server: ApiServer) -> None:
    query = b'{"query": "{ __typename }"}'
    for response, status in (
        (await send(server, query, accept="text/html"), 406),
        (await send(server, query, content_type="text/plain"), 415),
        (await send(server, query, content_type="application/json; charset=latin-1"), 415),
        (await send(server, query, content_type="application/x-www-form-urlencoded"), 415),
        (await send(server, query, content_type="multipart/form-data; boundary=x"), 415),
        (await server.http.get("/graphql", params={"query": "mutation { __typename }"}), 405),
        (await server.http.put("/graphql", content=query), 405),
        (await server.http.delete("/graphql"), 405),
    ):
        assert response.status_code == status
        (error,) = response.json()["errors"]
        assert error["extensions"] == {"code": "BAD_REQUEST"}
        assert (response.headers.get("allow") == "GET, POST") is (status == 405)


NO_REQUESTS: Final = (
    b"",
    b"{",
    b"5",
    b"null",
    b'"text"',
    b"[]",
    b'[{"query": "{ __typename }"}]',
    b"{}",
    b'{"query": null}',
    b'{"query": ""}',
    b'{"query": 5}',
    b'{"query": "{ __typename }", "variables": []}',
    b'{"query": "{ __typename }", "variables": "x"}',
    b'{"query": "{ __typename }", "operationName": 5}',
    b'{"query": "{ __typename }", "operationName": "missing"}',
    b'{"query": "{ __typename }", "extensions": 5}',
    b'{"query": "{ __typename }", "variables": {"x": NaN}}',
    b'{"query": "{ __typename }", "variables": {"x": Infinity}}',
    b'{"query": "\xff"}',
    b"[" * 100_000,
)


async def test_what_isn_t_a_request_in_json_is_a_400(server: ApiServer) -> None:
    for body in NO_REQUESTS:
        response = await send(server, body)

        assert response.status_code == 400, body[:80]
        (error,) = response.json()["errors"]
        assert error["extensions"] == {"code": "BAD_REQUEST"}


async def test_a_query_may_be_asked_by_get(server: ApiServer) -> None:
    authorization = {"authorization": f"Bearer {server.token()}"}
    query = "query ($code: String!) { viewer { subject } accountByCode(code: $code) { id } }"
    parameters = {"query": query, "variables": '{"code": "x"}'}

    answer = await server.http.get("/graphql", params=parameters, headers=authorization)
    anonymous = await server.http.get("/graphql", params=parameters)
    broken = await server.http.get("/graphql", params={"query": query, "variables": "{"})

    assert answer.json() == {"data": {"viewer": {"subject": "alice"}, "accountByCode": None}}
    assert anonymous.status_code == 401
    assert broken.status_code == 400


async def test_g12_nothing_is_changed_by_get(server: ApiServer) -> None:
    before = await server.booked()
    document = (
        'mutation { openAccount(input: {idempotencyKey: "k", currency: "BRL"}) { replayed } }'
    )

    response = await server.http.get(
        "/graphql",
        params={"query": document},
        headers={"authorization": f"Bearer {server.token()}"},
    )

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST"
    assert await server.booked() == before


async def test_of_several_operations_one_must_be_named(server: ApiServer) -> None:
    document = "query a { a: __typename } query b { b: __typename }"

    unnamed = (await server.post(document)).json()
    named = (await server.post(document, operationName="b")).json()

    assert unnamed["errors"][0]["extensions"] == {"code": "BAD_REQUEST"}
    assert named == {"data": {"b": "Query"}}


async def test_a_subscription_is_told_the_way(server: ApiServer) -> None:
    response = await server.post(
        "subscription { balanceChanged(accountIds: []) { __typename } }", token=server.token()
    )
    assert response.status_code == 400
    assert response.json()["errors"][0]["message"] == "Subscriptions are served over WebSocket."


async def test_a_person_gets_a_page(server: ApiServer) -> None:
    response = await server.http.get("/graphql", headers={"accept": "text/html,*/*;q=0.8"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert "GraphiQL" in response.text


@pytest.fixture
async def narrow(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    """Run a server that takes small bodies only."""
    async with running_server(database_url.runtime_url, Limits(body_bytes=1_024)) as running:
        yield running


async def test_a_body_is_read_up_to_its_limit(narrow: ApiServer) -> None:
    query = b'{"query": "{ __typename }"}'
    assert (await send(narrow, query.ljust(1_024))).status_code == 200

    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    for content in (query.ljust(1_025), endless()):
        response = await narrow.http.post(
            "/graphql", content=content, headers={"content-type": "application/json"}
        )
        assert response.status_code == 413
        assert response.json()["errors"][0]["extensions"] == {"code": "BAD_REQUEST"}


async def accounts(server: ApiServer) -> int:
    data = await server.ask("{ viewer { accounts { totalCount } } }")
    return int(data["viewer"]["accounts"]["totalCount"])


async def test_a_client_that_goes_away_cancels_nothing(server: ApiServer) -> None:
    document = (
        'mutation { openAccount(input: {idempotencyKey: "gone", currency: "BRL"}) { replayed } }'
    )
    body = orjson.dumps({"query": document})
    head = (
        "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {server.token()}\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()

    for sent in (head + body[:-1], head + body):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        await writer.drain()
        writer.close()

    # The request that was cut short has left nothing; the whole one was carried out though nobody heard of it.
    async with asyncio.timeout(10):
        while not await accounts(server):  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.01)
    assert await accounts(server) == 1
    repeated = await server.ask(document)
    assert repeated == {"openAccount": {"replayed": True}}


async def test_operations_are_measured_by_type_and_outcome(server: ApiServer) -> None:
    def measured(type_: str, outcome: str) -> float:
        return metric("saldo_graphql_request_seconds_count", type=type_, outcome=outcome)

    expected = [("query", "ok"), ("query", "bad_request"), ("mutation", "unauthenticated")]
    before = [measured(*labels) for labels in expected]

    await server.post("{ __typename }")
    await server.post("{ nothing }", token=server.token())
    await server.post(
        'mutation { openAccount(input: {idempotencyKey: "k", currency: "BRL"}) { replayed } }'
    )

    assert [measured(*labels) for labels in expected] == [count + 1 for count in before]

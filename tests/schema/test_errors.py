"""Top-level errors: a stable code for each, and nothing of what is inside for anybody."""

import re
from collections.abc import AsyncGenerator
from typing import Final, get_args

import pytest
from structlog.testing import capture_logs

from app.ledger import errors
from app.schema import Limits
from app.schema.sentences import AnyRefusal
from tests.schema.server import ApiServer, account_id, running_server
from tests.support.ledger import Wallet
from tests.support.postgres import TestDatabase, connect

SECRETS = re.compile(
    r"select |insert |update |journal|idempotency_key|sqlstate|asyncpg|sqlalchemy|psycopg|Traceback"
    r"|\.py\b|/app/|site-packages|0x[0-9a-f]{6}|\wError\b|Exception|127\.0\.0\.1|localhost",
    re.IGNORECASE,
)
"""What must never reach a client."""

ACCOUNT = "query ($id: ID!) { account(id: $id) { id balance { sequence } } }"


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000)


def test_every_refusal_of_the_ledger_is_told() -> None:
    # By name, because a dataclass with slots is made twice, and the first one lives until it is collected.
    told = {refusal.__name__ for refusal in get_args(AnyRefusal)}
    assert told == {refusal.__name__ for refusal in errors.Refusal.__subclasses__()}
    assert {refusal.code for refusal in get_args(AnyRefusal)} == set(errors.RefusalCode)


MISTAKES: Final = (
    "{",
    "{ viewer { subject }",
    "{ balanc }",
    "{ viewer }",
    "{ viewer { subject { x } } }",
    "{ ...missing }",
    "{ ...a } fragment a on Query { ...a }",
    "{ account(id: 1.5) { id } }",
    "{ account { id } }",
    '{ accountByCode(code: "\\u0000") { id } }',
    '{ payee(code: "a\\u0000b") { id } }',
    '{ accountByCode(code: "\\ud800") { id } }',
    '{ account(id: "\\u0000") { id } }',
    '{ node(id: "caf\\u00e9") { id } }',
    '{ transactionByIdempotencyKey(idempotencyKey: "\\u0000") { id } }',
    '{ transactionByIdempotencyKey(idempotencyKey: "") { id } }',
    "query ($id: ID!) { account(id: $id) { id } }",
    "query a { __typename } query b { __typename }",
    "fragment a on Query { __typename }",
    "subscription { balanceChanged(accountIds: []) { __typename } }",
    "query q @skip(if: true) { __typename }",
    "{" + "a" * 70_000 + "}",
    "{" * 3_000,
)


async def test_g07_mistakes_of_clients_are_told_and_not_logged(server: ApiServer) -> None:
    for document in MISTAKES:
        with capture_logs() as logged:
            response = await server.post(document, token=server.token())

        assert response.status_code in {200, 400}
        codes = {error["extensions"]["code"] for error in response.json()["errors"]}
        assert codes == {"BAD_REQUEST"}, document[:80]
        assert not SECRETS.search(response.text), response.text
        assert logged == []


async def test_g07_a_lone_surrogate_in_a_variable_is_a_bad_request(server: ApiServer) -> None:
    body = (
        b'{"query": "query ($id: ID!) { account(id: $id) { id } }", "variables": {"id": "\\ud800"}}'
    )
    response = await server.http.post(
        "/graphql", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"] == {"code": "BAD_REQUEST"}


async def test_g07_an_id_of_ten_megabytes_is_turned_away(server: ApiServer) -> None:
    response = await server.post(ACCOUNT, {"id": "x" * 10_000_000}, token=server.token())
    assert response.status_code == 413
    error = await server.fail(ACCOUNT, id="x" * 1_000_000)
    assert error["extensions"] == {"code": "BAD_REQUEST"}


async def test_g07_sql_in_an_id_names_nothing(server: ApiServer) -> None:
    assert await server.ask(ACCOUNT, id="1; select 1") == {"account": None}


async def test_g07_a_failure_of_ours_is_hidden_behind_its_reference(
    server: ApiServer, alice: Wallet, database_url: TestDatabase
) -> None:
    async with connect(database_url.owner_url) as connection:
        await connection.execute("alter table account rename column sequence to gone")

    with capture_logs() as logged:
        response = await server.post(ACCOUNT, {"id": account_id(alice)}, token=server.token())

    assert response.status_code == 200
    (error,) = response.json()["errors"]
    assert error["message"] == "Something went wrong on our side."
    assert error["path"] == ["account", "balance"]
    assert error["extensions"]["code"] == "INTERNAL"
    assert not SECRETS.search(response.text), response.text
    (line,) = logged
    assert line["reference"] == error["extensions"]["reference"]
    assert isinstance(line["exc_info"], Exception)


async def test_g07_a_failing_feed_tells_no_more(
    server: ApiServer, alice: Wallet, database_url: TestDatabase
) -> None:
    async with connect(database_url.owner_url) as connection:
        await connection.execute("alter table account rename column sequence to gone")
    query = "subscription ($id: ID!) { balanceChanged(accountIds: [$id]) { balance { sequence } } }"

    with capture_logs() as logged:
        async with server.socket() as socket:
            await socket.subscribe(query, id=account_id(alice))
            error = await socket.error()

    assert error["extensions"]["code"] == "INTERNAL"
    assert not SECRETS.search(repr(error)), error
    assert [line["reference"] for line in logged] == [error["extensions"]["reference"]]


@pytest.fixture
async def stranded(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    """Run a server that soon gives up waiting for a connection."""
    async with running_server(
        database_url.runtime_url, pool_size=1, pool_timeout_ms=100
    ) as running:
        yield running


async def test_no_connection_in_time_is_unavailable(stranded: ApiServer) -> None:
    async with stranded.reads.read_only():
        response = await stranded.post(ACCOUNT, {"id": "QWNj"}, token=stranded.token())
        assert response.json() == {"data": {"account": None}}  # Names nothing, so nothing is read.
        alone = await stranded.post('{ accountByCode(code: "x") { id } }', token=stranded.token())
        beside = await stranded.post(
            '{ viewer { subject } accountByCode(code: "x") { id } }', token=stranded.token()
        )

    assert alone.status_code == 503
    assert alone.headers["retry-after"] == "1"
    (error,) = alone.json()["errors"]
    assert error["extensions"]["code"] == "UNAVAILABLE"
    assert not SECRETS.search(alone.text), alone.text
    # What succeeded is told as such.
    assert beside.status_code == 200
    assert beside.json()["data"] == {"viewer": {"subject": "alice"}, "accountByCode": None}


async def test_no_place_in_the_engine_is_unavailable(server: ApiServer, alice: Wallet) -> None:
    bob = await server.books.wallet("bob")
    given = {
        "fromAccountId": account_id(alice),
        "toAccountId": account_id(bob),
        "amount": {"minorUnits": "1", "currency": "VND"},
    }
    query = """
    mutation ($a: OpenAccountInput!, $b: TransferInput!) {
      a: openAccount(input: $a) { replayed }
      b: transfer(input: $b) { replayed }
    }
    """
    opening = {"idempotencyKey": "open", "currency": "VND"}
    server.books.engine.close()

    alone = await server.post(
        "mutation ($b: TransferInput!) { transfer(input: $b) { replayed } }",
        {"b": {**given, "idempotencyKey": "alone"}},
        token=server.token(),
    )
    after = await server.post(
        query, {"a": opening, "b": {**given, "idempotencyKey": "after"}}, token=server.token()
    )

    assert alone.status_code == 503
    assert alone.headers["retry-after"] == "1"
    assert alone.json()["data"] is None
    assert alone.json()["errors"][0]["extensions"] == {
        "code": "UNAVAILABLE",
        "retryAfterSeconds": 1,
    }
    # The account has been opened, so this is no request that had no success.
    assert after.status_code == 200
    assert after.json()["errors"][0]["path"] == ["b"]
    (done,) = after.json()["extensions"]["carriedOut"]
    assert done["path"] == ["a"]


@pytest.fixture
async def closed(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    """Run a server to which the schema is a secret."""
    limits = Limits(introspection=False, graphiql=False)
    async with running_server(database_url.runtime_url, limits) as running:
        yield running


async def test_g07_a_secret_schema_stays_one(closed: ApiServer) -> None:
    token = closed.token()
    for document in ("{ balanc }", "{ viewer { subjec } }", "{ __schema { queryType { name } } }"):
        response = await closed.post(document, token=token)
        for error in response.json()["errors"]:
            assert error["extensions"] == {"code": "BAD_REQUEST"}
        assert "Did you mean" not in response.text
    assert (await closed.post("{ __typename }")).json() == {"data": {"__typename": "Query"}}
    page = await closed.http.get("/graphql", headers={"accept": "text/html"})
    assert page.status_code == 406

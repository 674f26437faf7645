"""Who may do what: nothing without a token, and nothing of others with one."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import jwt
import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    get_named_type,
    is_composite_type,
    parse,
    validate,
)

from app.ledger.model import Scope
from app.schema import build_schema
from app.schema.cursors import entry_cursor
from app.schema.ids import encode_account_id, encode_entry_id, encode_transaction_id
from tests.schema.server import SECRET, ApiServer, account_id, now
from tests.support.ledger import Wallet, new_id, posted

SCHEMA = build_schema().core

SCALARS = {
    "ID": '"none"',
    "String": '"text"',
    "Int": "1",
    "Boolean": "false",
    "BigInt": '"1"',
    "CurrencyCode": '"BRL"',
    "DateTime": '"2026-01-01T00:00:00Z"',
    "JSON": "{}",
}


def literal(type_: Any) -> str:
    """Write a value that the input type accepts."""
    if isinstance(type_, GraphQLNonNull):
        return literal(cast("Any", type_).of_type)
    if isinstance(type_, GraphQLList):
        return f"[{literal(cast('Any', type_).of_type)}]"
    if isinstance(type_, GraphQLEnumType):
        return next(iter(type_.values))
    if isinstance(type_, GraphQLInputObjectType):
        fields = [f"{name}: {literal(each)}" for name, each in required(type_.fields).items()]
        return "{" + ", ".join(fields) + "}"
    return SCALARS[type_.name]


def required(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Find the types of those arguments or input fields that can't be left out."""
    return {
        name: type_
        for name, type_ in ((name, each.type) for name, each in definitions.items())
        if isinstance(type_, GraphQLNonNull)
    }


def operation(kind: str, name: str) -> str:
    """Write an operation that asks for one root field."""
    root = {
        "query": SCHEMA.query_type,
        "mutation": SCHEMA.mutation_type,
        "subscription": SCHEMA.subscription_type,
    }[kind]
    assert isinstance(root, GraphQLObjectType)
    field = root.fields[name]
    given = [f"{argument}: {literal(type_)}" for argument, type_ in required(field.args).items()]
    arguments = f"({', '.join(given)})" if given else ""
    below = " { __typename }" if is_composite_type(get_named_type(field.type)) else ""
    return f"{kind} {{ {name}{arguments}{below} }}"


def root_fields(*kinds: str) -> list[tuple[str, str]]:
    roots = {
        "query": SCHEMA.query_type,
        "mutation": SCHEMA.mutation_type,
        "subscription": SCHEMA.subscription_type,
    }
    return [
        (kind, name)
        for kind in kinds
        for root in [roots[kind]]
        if root is not None
        for name in root.fields
    ]


async def test_no_field_answers_without_a_token(server: ApiServer) -> None:
    before = await server.booked()
    for kind, name in root_fields("query", "mutation"):
        response = await server.post(operation(kind, name))

        assert response.status_code == 401, name
        assert response.headers["www-authenticate"] == "Bearer"
        answer = response.json()
        assert "data" not in answer
        assert [error["extensions"] for error in answer["errors"]] == [{"code": "UNAUTHENTICATED"}]
    assert await server.booked() == before


async def test_the_operations_of_these_tests_are_well_formed(server: ApiServer) -> None:
    token = server.token("alice", *Scope)
    for kind, name in root_fields("query", "mutation"):
        answer = (await server.post(operation(kind, name), token=token)).json()
        assert "errors" not in answer, (name, answer)
    for _, name in root_fields("subscription"):
        assert not validate(SCHEMA, parse(operation("subscription", name)))


async def test_no_subscription_begins_without_a_token(server: ApiServer) -> None:
    async with server.connect() as socket:
        await socket.send({"type": "connection_init"})
        assert await socket.closed() == 4403
    for kind, name in root_fields("subscription"):
        async with server.connect() as socket:
            await socket.subscribe(operation(kind, name))
            assert await socket.closed() == 4401


@pytest.mark.parametrize("document", ["{ __typename }", "{ __schema { queryType { name } } }"])
async def test_the_schema_itself_is_open(server: ApiServer, document: str) -> None:
    response = await server.post(document)
    assert response.status_code == 200
    assert "errors" not in response.json()


async def test_a_field_beside_the_schema_is_not(server: ApiServer) -> None:
    response = await server.post(
        "{ __typename ...more } fragment more on Query { viewer { subject } }"
    )
    assert response.status_code == 401


def signed(**claims: Any) -> str:
    exp = now() + timedelta(hours=1)
    whole = {"sub": "alice", "scope": "WALLET", "exp": exp, **claims}
    return jwt.encode({k: v for k, v in whole.items() if v is not None}, SECRET, algorithm="HS256")


async def test_an_invalid_token_is_none(server: ApiServer) -> None:
    unsigned = jwt.encode({"sub": "a", "scope": "AUDIT", "exp": 9e9}, "", "none")
    expired = signed(exp=now() - timedelta(seconds=1))
    for authorization in (
        *("Bearer", "Bearer nonsense", "Basic YWxpY2U6c2VjcmV0", "Bearer " + "x" * 10_000),
        *(f"Bearer {signed(**{claim: None})}" for claim in ("sub", "scope", "exp")),
        *(f"Bearer {token}" for token in (unsigned, expired, signed()[:-2], signed(sub=""))),
    ):
        response = await server.post(
            "{ viewer { subject } }", headers={"authorization": authorization}
        )

        assert response.status_code == 401, authorization
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["errors"][0]["extensions"] == {"code": "UNAUTHENTICATED"}
    valid = await server.post("{ viewer { subject } }", token=signed())
    assert valid.json() == {"data": {"viewer": {"subject": "alice"}}}


async def test_a_missing_scope_is_named(server: ApiServer) -> None:
    auditor = server.token("auditor", Scope.AUDIT)
    for name, scopes in (("transfer", ["WALLET"]), ("deposit", ["OPERATE"])):
        error = await server.fail(operation("mutation", name), auditor)
        assert error["extensions"] == {"code": "FORBIDDEN", "scopes": scopes}
    error = await server.fail(operation("mutation", "openAccount"), auditor)
    assert error["extensions"] == {"code": "FORBIDDEN", "scopes": ["WALLET", "OPERATE"]}


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    account = await server.books.open(owner="alice", code="alice:main", currency="VND")
    await server.books.deposit(account, 1_000)
    return Wallet(account, (await server.books.wallet("alice")).owner)


READS = """
query ($account: ID!, $transaction: ID!, $entry: ID!, $key: String!, $code: String!) {
  account(id: $account) { id balance { available { minorUnits } } }
  accountByCode(code: $code) { id }
  transaction(id: $transaction) { id }
  transactionByIdempotencyKey(idempotencyKey: $key) { id }
  a: node(id: $account) { id }
  t: node(id: $transaction) { id }
  e: node(id: $entry) { id }
  nodes(ids: [$account, $transaction, $entry]) { id }
}
"""


async def test_g11_what_is_of_others_looks_like_what_isn_t_there(
    server: ApiServer, alice: Wallet
) -> None:
    deposit = posted(await server.books.deposit(alice.account, 5)).transaction
    of_alice = {
        "account": account_id(alice),
        "transaction": encode_transaction_id(deposit.id),
        "entry": encode_entry_id(alice.id, 1),
        "key": "whatever",
        "code": "alice:main",
    }
    nobody = new_id()
    of_nobody = {
        "account": encode_account_id(nobody),
        "transaction": encode_transaction_id(nobody),
        "entry": encode_entry_id(nobody, 1),
        "key": "whatever",
        "code": "nobody:main",
    }
    bob = server.token("bob")

    assert await server.ask(READS, bob, **of_alice) == await server.ask(READS, bob, **of_nobody)
    own = await server.ask(READS, **of_alice)
    assert own["account"]["balance"] == {"available": {"minorUnits": "1005"}}
    auditor = await server.ask(READS, server.token("auditor", Scope.AUDIT), **of_alice)
    assert auditor == own
    operator = await server.ask(READS, server.token("x", Scope.OPERATE), **of_alice)
    assert operator == await server.ask(READS, bob, **of_nobody)


async def test_g11_the_other_side_of_a_transaction_shows_no_balance(
    server: ApiServer, alice: Wallet
) -> None:
    bob = await server.books.wallet("bob")
    transaction = posted(await server.books.transfer(alice, bob, 10)).transaction
    query = """
    query ($id: ID!) {
      transaction(id: $id) { legs { account { id code purpose currency } amount { minorUnits } } }
    }
    """

    seen = await server.ask(query, server.token("bob"), id=encode_transaction_id(transaction.id))

    assert [leg["account"]["code"] for leg in seen["transaction"]["legs"]] == ["alice:main", None]
    summary = SCHEMA.type_map["AccountSummary"]
    assert isinstance(summary, GraphQLObjectType)
    assert set(summary.fields) == {"id", "code", "currency", "purpose"}


@pytest.mark.parametrize("field", ["balanceChanged", "entryPosted"])
async def test_g11_feeds_of_others_look_like_feeds_of_nothing(
    server: ApiServer, alice: Wallet, field: str
) -> None:
    argument = "accountIds: [$id]" if field == "balanceChanged" else 'accountId: $id, after: ""'
    query = f"subscription ($id: ID!) {{ {field}({argument}) {{ __typename }} }}"
    async with server.socket(server.token("bob")) as socket:
        errors: list[dict[str, Any]] = []
        for number, key in enumerate([account_id(alice), encode_account_id(new_id()), "no id"]):
            await socket.subscribe(query, str(number), id=key)
            errors.append(await socket.error(str(number)))
    assert errors[0] == errors[1] == errors[2]
    assert errors[0]["extensions"] == {"code": "ACCOUNT_NOT_FOUND"}


async def test_g11_a_cursor_of_others_opens_nothing(server: ApiServer, alice: Wallet) -> None:
    bob = await server.books.wallet("bob", 10)
    query = "subscription ($id: ID!, $after: String) { entryPosted(accountId: $id, after: $after) { cursor } }"
    async with server.socket(server.token("bob")) as socket:
        await socket.subscribe(query, id=account_id(bob), after=entry_cursor(alice.id, 1))
        error = await socket.error()
    assert error["extensions"] == {"code": "INVALID_CURSOR"}

"""How much one operation may ask for, and that finding out takes no longer than reading the document."""

from typing import Any, Final

import pytest
from graphql import OperationDefinitionNode, parse, validate

from app.schema import build_schema
from app.schema.errors import ApiError
from app.schema.limits import ALIASES_LIMIT, DEPTH_LIMIT, weigh
from tests.schema.operators import book
from tests.schema.server import ApiServer, account_id
from tests.support.ledger import Wallet

SCHEMA = build_schema().core

ENTRIES = (
    "entries(first: {first}) {{ nodes {{ transaction {{ legs {{ account {{ code }} }} }} }} }}"
)


def refusal(text: str, **variables: Any) -> ApiError | None:
    """Weigh the last operation of a valid document."""
    document = parse(text)
    assert not validate(SCHEMA, document)
    *_, operation = (
        definition
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
    )
    return weigh(SCHEMA, document, operation, variables).refusal


def nested(levels: int) -> str:
    """Write a query that goes so many levels down through the reversals of a transaction."""
    return (
        '{ transaction(id: "x") '
        + "{ reverses " * (levels - 2)
        + "{ id "
        + "} " * (levels - 2)
        + "} }"
    )


def accounts(count: int) -> str:
    return "{" + " ".join(f'a{n}: account(id: "x") {{ id }}' for n in range(count)) + "}"


def entries(first: object) -> str:
    """Write a query of some fields for each entry, on 100 accounts of the viewer."""
    return (
        "query q($size: Int) { viewer { accounts(first: 100) { nodes { "
        f"entries(first: {first}) {{ nodes {{ id sequence direction postedAt }} }} }} }} }} }}"
    )


def test_depth_is_limited() -> None:
    assert refusal(nested(DEPTH_LIMIT)) is None
    assert refusal(nested(DEPTH_LIMIT + 1)) is not None


def test_aliases_are_limited() -> None:
    assert refusal(accounts(ALIASES_LIMIT)) is None
    too_many = refusal(accounts(ALIASES_LIMIT + 1))
    assert too_many is not None
    assert too_many.code == "QUERY_TOO_COMPLEX"
    assert str(ALIASES_LIMIT) in too_many.message


@pytest.mark.parametrize(
    ("first", "variables", "allowed"),
    [
        ("50", {}, True),
        ("100", {}, False),
        ("$size", {"size": 50}, True),
        ("$size", {"size": 100}, False),
        ("$size", {"size": 10**9}, False),
        ("$size", {"size": None}, True),
        ("$size", {"size": "text"}, True),
        ("$size", {}, True),
        ("2147483647", {}, False),
        ("-5", {}, True),
    ],
    ids=repr,
)
def test_cost_counts_pages_as_they_are_asked_for(
    first: str, variables: dict[str, Any], allowed: bool
) -> None:
    text = entries(first) if "$" in first else entries(first).replace("query q($size: Int)", "")
    assert (refusal(text, **variables) is None) is allowed


def test_cost_counts_the_default_of_a_variable() -> None:
    text = entries("$size").replace("$size: Int", "$size: Int = 100")
    assert refusal(text) is not None
    assert refusal(text, size=50) is None


def test_cost_counts_lists_that_are_given() -> None:
    fields = " ".join(f"f{n}: code" for n in range(90))
    text = f"query ($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on Account {{ {fields} }} }} }}"
    assert refusal(text, ids=["x"] * 100) is None
    assert refusal(text, ids=["x"] * 1_000) is not None
    batch = """
    mutation ($input: TransferBatchInput!) {
      transferBatch(input: $input) {
        results { transaction { id postedAt } replayed entries { sequence } userErrors { code } }
      }
    }
    """
    assert refusal(batch, input={"transfers": [{}] * 1_000}) is None
    # What a transfer carries is no list of objects.
    assert refusal(batch, input={"transfers": [{"metadata": {"a": [0] * 2_000}}] * 10}) is None
    single = """
    mutation ($input: TransferInput!) {
      transfer(input: $input) { transaction { id legs { account { id code } amount { decimal } } } }
    }
    """
    assert refusal(single, input={"metadata": {"a": [0] * 2_000}}) is None
    assert refusal(batch, input={"transfers": [{}] * 10_000}) is not None


def test_cost_counts_the_legs_that_are_given() -> None:
    fields = " ".join(f"f{n}: sequence" for n in range(90))
    post = f"""
    mutation ($input: PostTransactionInput!) {{
      a: postTransaction(input: $input) {{ entries {{ {fields} }} }}
      b: postTransaction(input: $input) {{ entries {{ sequence postedAt }} }}
    }}
    """
    assert refusal(post, input={"legs": [{}] * 200}) is None
    assert refusal(post, input={"legs": [{}] * 1_000}) is not None


def test_a_batch_may_ask_for_all_that_it_does() -> None:
    batch = """
    mutation ($input: TransferBatchInput!) {
      transferBatch(input: $input) {
        results {
          transaction {
            id type description metadata effectiveAt postedAt
            legs {
              direction amount { minorUnits decimal currency } account { id code currency purpose }
            }
          }
          entries {
            id sequence direction amount { minorUnits } balanceAfter { minorUnits } postedAt
          }
          replayed userErrors { code message path retryable }
        }
        userErrors { code }
      }
    }
    """
    assert refusal(batch, input={"transfers": [{}] * 1_000}) is None


@pytest.mark.parametrize(
    ("nested", "allowed"),
    [
        ("holds(first: 20) { nodes { transactions { legs { direction } } } }", True),
        ("holds(first: 40) { nodes { transactions { id type description postedAt } } }", True),
        ("holds(first: 60) { nodes { transactions { id type description postedAt } } }", False),
        ("holds(first: 100) { nodes { id status } }", True),
        (
            "withdrawals(first: 40) { nodes { transactions { id type description postedAt } } }",
            True,
        ),
        (
            "withdrawals(first: 60) { nodes { transactions { id type description postedAt } } }",
            False,
        ),
        ("holds(first: 30) { nodes { transactions { hold { transactions { id type } } } } }", True),
        (
            "holds(first: 40) { nodes { transactions { hold { transactions { id type } } } } }",
            False,
        ),
        (
            "withdrawals(first: 30) { nodes { transactions { withdrawal { transactions { id type } } } } }",
            True,
        ),
        (
            "withdrawals(first: 40) { nodes { transactions { withdrawal { transactions { id type } } } } }",
            False,
        ),
    ],
)
def test_cost_counts_what_holds_and_withdrawals_lead_to(nested: str, allowed: bool) -> None:
    text = f"{{ accounts(first: 100) {{ nodes {{ {nested} }} }} }}"
    assert (refusal(text) is None) is allowed


def bomb(fragments: int) -> str:
    """Write fragments of which each spreads the next one twice."""
    chain = "".join(
        f"fragment f{n} on Transaction {{ reverses {{ ...f{n + 1} }} reversedBy {{ ...f{n + 1} }} }} "
        for n in range(fragments)
    )
    last = f"fragment f{fragments} on Transaction {{ id }}"
    return f'{chain}{last} {{ transaction(id: "x") {{ ...f0 }} }}'


async def test_g05_fragments_count_as_what_they_expand_to(server: ApiServer) -> None:
    for fragments in (14, 30, 60):
        error = await server.fail(bomb(fragments))
        assert error["extensions"] == {"code": "QUERY_TOO_COMPLEX"}, fragments
    wide = "".join(f"fragment f{n} on Account {{ ...f{n + 1} ...f{n + 1} }} " for n in range(40))
    wide += 'fragment f40 on Account { a: id } { account(id: "x") { ...f0 } }'
    error = await server.fail(wide)
    assert error["extensions"] == {"code": "QUERY_TOO_COMPLEX"}


async def test_g05_the_operation_that_runs_is_the_one_that_is_weighed(server: ApiServer) -> None:
    document = "query small { __typename } query deep " + nested(DEPTH_LIMIT + 1)

    small = await server.post(document, token=server.token(), operationName="small")
    deep = await server.post(document, token=server.token(), operationName="deep")

    assert small.json() == {"data": {"__typename": "Query"}}
    assert deep.json()["errors"][0]["extensions"] == {"code": "QUERY_TOO_COMPLEX"}


async def test_g05_abuse_of_the_document_is_refused(server: ApiServer) -> None:
    for document in (
        "{" * 60_000,
        "{ __typename " + "@skip(if: false) " * 1_000 + "}",
        "{ viewer { " + "subject " * 3_000 + "} }",
        "{ viewer { " + "accounts(first: 1) { totalCount } " * 190 + "accounts { totalCount } } }",
    ):
        response = await server.post(document, token=server.token())
        codes = {error["extensions"]["code"] for error in response.json()["errors"]}
        assert codes == {"BAD_REQUEST"}


async def test_a_legal_query_in_fragments_passes(server: ApiServer) -> None:
    data = await server.ask(
        """
        query { viewer { ...who accounts(first: 100) { nodes { ...account } } } }
        fragment who on Viewer { subject scopes }
        fragment account on Account { id balance { ...amounts } }
        fragment amounts on Balance { posted { ...money } held { ...money } available { ...money } }
        fragment money on Money { decimal currency }
        """
    )
    assert data["viewer"]["subject"] == "alice"


LEGS: Final = "legs { direction amount { minorUnits decimal currency } account { id code } }"


@pytest.fixture
async def shop(server: ApiServer) -> Wallet:
    """Open a wallet that has been paid by transactions of many legs."""
    alice = await server.books.wallet("alice", 1_000)
    shop = await server.books.wallet("shop")
    await book(server, [(alice, -199), *[(shop, 1)] * 199])
    return shop


async def test_g05_lists_that_are_longer_than_usual_cost_what_they_are(
    server: ApiServer, shop: Wallet
) -> None:
    query = (
        "query ($id: ID!, $first: Int) { account(id: $id) { entries(first: $first) "
        f"{{ nodes {{ transaction {{ {LEGS} }} }} }} }} }}"
    )
    token = server.token("shop")

    page = await server.ask(query, token, id=account_id(shop), first=20)
    nodes = page["account"]["entries"]["nodes"]
    assert [len(node["transaction"]["legs"]) for node in nodes] == [200] * 20
    answer = (await server.post(query, {"id": account_id(shop), "first": 100}, token=token)).json()
    assert answer["data"] == {"account": None}
    codes = {error["extensions"]["code"] for error in answer["errors"]}
    assert codes == {"QUERY_TOO_COMPLEX"}


async def test_g05_each_event_of_a_feed_may_be_as_long_as_an_answer(
    server: ApiServer, shop: Wallet
) -> None:
    query = (
        'subscription ($id: ID!) { entryPosted(accountId: $id, after: "") '
        f"{{ entry {{ transaction {{ {LEGS} }} }} }} }}"
    )
    async with server.socket(server.token("shop")) as socket:
        await socket.subscribe(query, id=account_id(shop))
        # More legs in all than one answer may have.
        for _ in range(60):
            event = await socket.next()
            assert len(event["entryPosted"]["entry"]["transaction"]["legs"]) == 200


async def test_the_schema_itself_may_be_asked_for(server: ApiServer) -> None:
    from graphql import get_introspection_query  # noqa: PLC0415 - the deepest query that tools send

    response = await server.post(get_introspection_query(input_value_deprecation=True))
    assert "errors" not in response.json()


def test_a_document_is_prepared_once() -> None:
    schema = build_schema()
    first = schema.prepare("{ viewer { subject } }")
    assert schema.prepare("{ viewer { subject } }") is first
    assert schema.prepare.cache_info().hits == 1


ALIASED_INTROSPECTION = (
    "{ __schema { a: types { name } b: types { name } } }",
    "{ __schema { types { ...T } } } fragment T on __Type { fields { x: name y: name } }",
    '{ __type(name: "Account") { ... on __Type { a: name } } }',
    "{ " + " ".join(f"a{n}: __schema {{ types {{ name }} }}" for n in range(6)) + " }",
)


@pytest.mark.parametrize("text", ALIASED_INTROSPECTION)
async def test_introspection_is_not_multiplied_by_aliases(server: ApiServer, text: str) -> None:
    """Nobody needs a token to ask for the schema, so asking for it many times over must cost nothing."""
    refused = refusal(text)
    assert refused is not None
    assert refused.code == "QUERY_TOO_COMPLEX"
    response = await server.post(text)
    assert response.json()["errors"][0]["extensions"] == {"code": "QUERY_TOO_COMPLEX"}
    assert "data" not in response.json()


def test_introspection_as_tools_ask_for_it_is_answered() -> None:
    assert refusal('{ __schema { types { name } } __type(name: "Account") { name } }') is None
    assert refusal("{ a: __typename b: __typename }") is None

"""Queries: accounts, their history page by page, transactions and nodes."""

from typing import Any, Final

import pytest

from app.ledger.model import Scope
from app.schema.cursors import entry_cursor
from app.schema.ids import encode_account_id, encode_entry_id, encode_transaction_id
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import Wallet, new_id, posted

HISTORY = """
query ($id: ID!, $first: Int, $after: String, $last: Int, $before: String, $filter: EntryFilter, $order: EntryOrder) {
  account(id: $id) {
    entries(first: $first, after: $after, last: $last, before: $before, filter: $filter, order: $order) {
      totalCount
      edges { cursor node { sequence } }
      nodes { sequence amount { minorUnits } balanceAfter { minorUnits } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""


@pytest.fixture
async def bob(server: ApiServer) -> Wallet:
    return await server.books.wallet("bob")


@pytest.fixture
async def alice(server: ApiServer, bob: Wallet) -> Wallet:
    """Open a wallet with a history of seven entries: a deposit of 1,000 and payments of 1 to 6."""
    wallet = await server.books.wallet("alice", 1_000)
    for amount in range(1, 7):
        posted(await server.books.transfer(wallet, bob, amount))
    return wallet


async def history(server: ApiServer, wallet: Wallet, **arguments: Any) -> JsonObject:
    data = await server.ask(HISTORY, id=account_id(wallet), **arguments)
    return data["account"]["entries"]


def numbers(page: JsonObject) -> list[int]:
    return [int(edge["node"]["sequence"]) for edge in page["edges"]]


async def test_an_account_shows_all_of_itself_to_its_owner(server: ApiServer) -> None:
    account = await server.books.open(
        owner="alice", code="alice:main", currency="BRL", metadata={"colour": "blue"}
    )
    query = """
    {
      accountByCode(code: "alice:main") {
        id code owner kind normalBalance currency status allowNegative tracking metadata createdAt
        balance { posted { decimal } held { decimal } available { decimal } sequence }
      }
      payee(code: "alice:main") { id code currency purpose }
    }
    """

    data = await server.ask(query)

    shown = data["accountByCode"]
    assert shown.pop("createdAt").endswith("Z")
    assert shown == {
        "id": encode_account_id(account.id),
        "code": "alice:main",
        "owner": "alice",
        "kind": "LIABILITY",
        "normalBalance": "CREDIT",
        "currency": "BRL",
        "status": "ACTIVE",
        "allowNegative": False,
        "tracking": "TRACKED",
        "metadata": {"colour": "blue"},
        "balance": {
            "posted": {"decimal": "0.00"},
            "held": {"decimal": "0.00"},
            "available": {"decimal": "0.00"},
            "sequence": "0",
        },
    }
    assert data["payee"] == {
        "id": encode_account_id(account.id),
        "code": "alice:main",
        "currency": "BRL",
        "purpose": "MAIN",
    }


async def test_a_history_is_read_newest_first_and_page_by_page(
    server: ApiServer, alice: Wallet
) -> None:
    seen: list[int] = []
    after = None
    while True:
        page = await history(server, alice, first=3, after=after)
        assert page["totalCount"] == "7"
        assert page["pageInfo"]["hasPreviousPage"] is (after is not None)
        seen += numbers(page)
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == [7, 6, 5, 4, 3, 2, 1]


ENDS: Final[list[tuple[JsonObject, list[int], bool, bool]]] = [
    ({"order": "OLDEST_FIRST", "first": 2}, [1, 2], True, False),
    ({"order": "OLDEST_FIRST", "last": 2}, [6, 7], False, True),
    ({"last": 2}, [2, 1], False, True),
    ({"first": 100}, [7, 6, 5, 4, 3, 2, 1], False, False),
    ({"order": None, "first": 1}, [7], True, False),
]


async def test_a_page_is_read_from_either_end(server: ApiServer, alice: Wallet) -> None:
    for arguments, expected, has_next, has_previous in ENDS:
        page = await history(server, alice, **arguments)

        assert numbers(page) == expected
        assert page["pageInfo"]["hasNextPage"] is has_next
        assert page["pageInfo"]["hasPreviousPage"] is has_previous


async def test_one_cursor_serves_both_orders_and_directions(
    server: ApiServer, alice: Wallet
) -> None:
    fourth = entry_cursor(alice.id, 4)

    assert numbers(await history(server, alice, after=fourth)) == [3, 2, 1]
    assert numbers(await history(server, alice, before=fourth)) == [7, 6, 5]
    assert numbers(await history(server, alice, last=2, before=fourth)) == [6, 5]
    assert numbers(await history(server, alice, after=fourth, order="OLDEST_FIRST")) == [5, 6, 7]
    between = await history(server, alice, after=entry_cursor(alice.id, 6), before=fourth)
    assert numbers(between) == [5]


async def test_a_cursor_stays_where_it_is_while_the_history_grows(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    page = await history(server, alice, first=2)
    posted(await server.books.transfer(alice, bob, 1))

    following = await history(server, alice, first=2, after=page["pageInfo"]["endCursor"])

    assert numbers(page) + numbers(following) == [7, 6, 5, 4]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"types": ["deposit"]}, [1]),
        ({"types": []}, []),
        ({"types": ["nothing"]}, []),
        ({"direction": "DEBIT", "minMinorUnits": "3", "maxMinorUnits": 5}, [6, 5, 4]),
        ({"direction": "CREDIT"}, [1]),
        ({"postedBefore": "2000-01-01T00:00:00Z"}, []),
        (
            {"postedFrom": "2000-01-01T00:00:00Z", "types": ["deposit", "transfer"]},
            list(range(7, 0, -1)),
        ),
        ({"types": None}, list(range(7, 0, -1))),
        (None, list(range(7, 0, -1))),
    ],
    ids=repr,
)
async def test_a_history_is_filtered_and_counted(
    server: ApiServer, alice: Wallet, filter: JsonObject | None, expected: list[int]
) -> None:
    page = await history(server, alice, filter=filter)

    assert numbers(page) == expected
    assert page["totalCount"] == str(len(expected))


SILLY_PAGES: Final[list[JsonObject]] = [
    {"first": 0},
    {"first": -1},
    {"first": 101},
    {"first": 1_000_000_000},
    {"first": 2**31 - 1, "last": 1},
    {"first": 2**31},
    {"last": 0},
    {"last": 101},
    {"first": 1, "last": 1},
    {"first": "1"},
    {"first": 1.5},
    {"filter": {"types": ["\0"]}},
    {"filter": {"minMinorUnits": 1.5}},
]


async def test_g09_a_silly_page_is_a_bad_request(server: ApiServer, alice: Wallet) -> None:
    for arguments in SILLY_PAGES:
        error = await server.fail(HISTORY, id=account_id(alice), **arguments)
        assert error["extensions"] == {"code": "BAD_REQUEST"}, arguments


async def test_g09_what_isn_t_a_cursor_of_this_account_is_an_invalid_cursor(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    cursor = entry_cursor(alice.id, 3)
    flipped = cursor[:5] + ("A" if cursor[5] != "A" else "B") + cursor[6:]
    foreign = entry_cursor(bob.id, 3)
    for forged in ("", cursor[:-1], flipped, foreign, "\0", "A" * 100_000):
        for side in ("after", "before"):
            error = await server.fail(HISTORY, id=account_id(alice), **{side: forged})
            assert error["extensions"] == {"code": "INVALID_CURSOR"}, forged[:50]


async def test_a_past_balance_is_the_one_of_its_instant(server: ApiServer, alice: Wallet) -> None:
    times = await server.ask(
        "query ($id: ID!) { account(id: $id) { entries(order: OLDEST_FIRST) { nodes { postedAt } } } }",
        id=account_id(alice),
    )
    third = times["account"]["entries"]["nodes"][2]["postedAt"]

    data = await server.ask(
        """
        query ($id: ID!, $third: DateTime!) {
          account(id: $id) {
            before: balanceAt(at: "0001-01-01T00:00:00Z") { minorUnits }
            then: balanceAt(at: $third) { minorUnits }
            later: balanceAt(at: "9999-12-31T23:59:59Z") { minorUnits }
          }
        }
        """,
        id=account_id(alice),
        third=third,
    )

    assert data["account"] == {
        "before": {"minorUnits": "0"},
        "then": {"minorUnits": "997"},
        "later": {"minorUnits": "979"},
    }


async def test_nodes_keep_their_order_and_hide_what_isn_t_the_callers(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    answer = posted(await server.books.transfer(alice, bob, 1))
    foreign = posted(await server.books.deposit(bob.account, 5))
    ids = [
        encode_transaction_id(answer.transaction.id),
        account_id(bob),
        encode_entry_id(alice.id, 2),
        "no id",
        account_id(alice),
        encode_entry_id(bob.id, 1),
        encode_account_id(new_id()),
        encode_entry_id(alice.id, 1_000),
        encode_transaction_id(foreign.transaction.id),
        account_id(alice),
    ]
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Entry { sequence } } }"

    nodes = (await server.ask(query, ids=ids))["nodes"]

    assert [node and node["__typename"] for node in nodes] == [
        *("Transaction", None, "Entry", None, "Account", None, None, None, None, "Account"),
    ]
    assert nodes[2] == {"__typename": "Entry", "id": ids[2], "sequence": "2"}
    single = "query ($id: ID!) { node(id: $id) { id } }"
    for node_id, node in zip(ids, nodes, strict=True):
        alone = (await server.ask(single, id=node_id))["node"]
        assert alone == (None if node is None else {"id": node_id})


@pytest.mark.parametrize("count", [0, 100])
async def test_up_to_a_hundred_nodes_may_be_asked_for(server: ApiServer, count: int) -> None:
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    assert (await server.ask(query, ids=["none"] * count))["nodes"] == [None] * count


async def test_more_than_a_hundred_nodes_are_a_bad_request(server: ApiServer) -> None:
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    error = await server.fail(query, ids=["none"] * 101)
    assert error["extensions"] == {"code": "BAD_REQUEST"}


async def test_g09_an_id_of_another_type_names_nothing(server: ApiServer, alice: Wallet) -> None:
    transaction = posted(await server.books.deposit(alice.account, 1)).transaction

    data = await server.ask(
        "query ($a: ID!, $t: ID!) { account(id: $t) { id } transaction(id: $a) { id } }",
        a=account_id(alice),
        t=encode_transaction_id(transaction.id),
    )

    assert data == {"account": None, "transaction": None}


async def test_a_key_tells_what_became_of_its_request(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    transaction = posted(await server.books.transfer(alice, bob, 1, key="lost")).transaction
    query = "query ($key: String!) { transactionByIdempotencyKey(idempotencyKey: $key) { id } }"

    found = await server.ask(query, key="lost")
    unknown = await server.ask(query, key="unknown")
    of_others = await server.ask(query, server.token("bob"), key="lost")

    assert found["transactionByIdempotencyKey"] == {"id": encode_transaction_id(transaction.id)}
    assert unknown["transactionByIdempotencyKey"] is None
    assert of_others["transactionByIdempotencyKey"] is None


async def test_the_viewer_pages_through_own_accounts(server: ApiServer) -> None:
    opened = [
        await server.books.open(owner="alice", currency=currency, code=f"alice:{currency}")
        for currency in ("BRL", "USD", "VND")
    ]
    await server.books.wallet("bob")
    query = """
    query ($first: Int, $after: String, $last: Int, $filter: AccountFilter) {
      viewer {
        subject scopes
        accounts(first: $first, after: $after, last: $last, filter: $filter) {
          totalCount nodes { id } edges { cursor node { code } } pageInfo { hasNextPage endCursor }
        }
      }
    }
    """
    token = server.token("alice", Scope.WALLET, Scope.OPERATE)

    first = (await server.ask(query, token, first=2))["viewer"]
    rest = (await server.ask(query, token, after=first["accounts"]["pageInfo"]["endCursor"]))[
        "viewer"
    ]
    last = (await server.ask(query, token, last=1))["viewer"]

    assert (first["subject"], first["scopes"]) == ("alice", ["OPERATE", "WALLET"])
    assert first["accounts"]["totalCount"] == "3"
    assert first["accounts"]["pageInfo"]["hasNextPage"] is True
    nodes = first["accounts"]["nodes"] + rest["accounts"]["nodes"]
    assert nodes == [{"id": encode_account_id(account.id)} for account in opened]
    assert last["accounts"]["nodes"] == nodes[-1:]
    for wanted, codes in (
        ({"currency": "USD"}, ["alice:USD"]),
        ({"codePrefix": "alice:V"}, ["alice:VND"]),
        ({"kind": "ASSET"}, []),
        ({"status": "ACTIVE", "owner": "alice"}, ["alice:BRL", "alice:USD", "alice:VND"]),
        ({"owner": "bob"}, []),
    ):
        found = (await server.ask(query, token, filter=wanted))["viewer"]["accounts"]
        assert [edge["node"]["code"] for edge in found["edges"]] == codes
        assert found["totalCount"] == str(len(codes))
    stolen = first["accounts"]["pageInfo"]["endCursor"]
    error = await server.fail(query, server.token("bob"), after=stolen)
    assert error["extensions"] == {"code": "INVALID_CURSOR"}


OPEN = """
mutation ($input: OpenAccountInput!) {
  openAccount(input: $input) {
    account { id code owner kind currency allowNegative metadata balance { available { minorUnits } } }
    replayed
    userErrors { code path message }
  }
}
"""


async def test_a_wallet_is_opened_once(server: ApiServer) -> None:
    given = {"idempotencyKey": "open", "currency": "BRL", "code": "shop", "metadata": {"a": 1}}

    first = (await server.ask(OPEN, input=given))["openAccount"]
    again = (await server.ask(OPEN, input={**given, "kind": "LIABILITY", "stripes": None}))[
        "openAccount"
    ]

    assert first["account"] == {
        "id": first["account"]["id"],
        "code": "shop",
        "owner": "alice",
        "kind": "LIABILITY",
        "currency": "BRL",
        "allowNegative": False,
        "metadata": {"a": 1},
        "balance": {"available": {"minorUnits": "0"}},
    }
    assert again == {**first, "replayed": True}


@pytest.mark.parametrize(
    ("changed", "code", "path"),
    [
        ({"code": "taken", "idempotencyKey": "other"}, "CODE_TAKEN", ["input", "code"]),
        ({"code": ""}, "INVALID_INPUT", ["input", "code"]),
        ({"code": "c" * 129}, "INVALID_INPUT", ["input", "code"]),
        ({"code": "nul\0"}, "INVALID_INPUT", ["input", "code"]),
        ({"code": "system:fees"}, "INVALID_INPUT", ["input", "code"]),
        ({"stripes": 4}, "INVALID_INPUT", ["input", "stripes"]),
        ({"metadata": "text"}, "INVALID_INPUT", ["input", "metadata"]),
    ],
    ids=repr,
)
async def test_a_wallet_that_breaks_a_rule_is_not_opened(
    server: ApiServer, changed: JsonObject, code: str, path: list[str]
) -> None:
    await server.books.open(owner="bob", code="taken")
    before = await server.booked()

    given = {"idempotencyKey": "open", "currency": "BRL", **changed}
    payload = (await server.ask(OPEN, input=given))["openAccount"]

    assert payload["account"] is None
    (refusal,) = payload["userErrors"]
    assert (refusal["code"], refusal["path"]) == (code, path)
    assert await server.booked() == before


async def test_an_operator_opens_accounts_of_others_and_of_the_platform(server: ApiServer) -> None:
    operator = server.token("operator", Scope.OPERATE)
    # Who opens accounts for others may not read what they have.
    opening = OPEN.replace("balance { available { minorUnits } }", "")
    for key, owner in (("others", "carol"), ("platform", None), ("own", "operator")):
        given = {"idempotencyKey": key, "currency": "BRL", "owner": owner}
        given = {**given, "kind": "REVENUE", "allowNegative": True}
        opened = await server.ask(opening, operator, input=given)
        assert opened["openAccount"]["account"]["owner"] == owner
    defaulted = await server.ask(
        opening, operator, input={"idempotencyKey": "default", "currency": "BRL"}
    )
    assert defaulted["openAccount"]["account"]["owner"] == "operator"


BESIDE: Final[list[tuple[JsonObject, int, int, list[int], bool, bool]]] = [
    # arguments, sequence of `after`, sequence of `before` (0: none), expected, more follow, more precede
    ({}, 0, 2, [7, 6, 5, 4, 3], True, False),
    ({"first": 2}, 0, 2, [7, 6], True, False),
    ({"first": 100}, 0, 2, [7, 6, 5, 4, 3], True, False),
    ({"last": 2}, 0, 2, [4, 3], True, True),
    ({"last": 100}, 6, 0, [5, 4, 3, 2, 1], False, True),
    ({"first": 100}, 6, 2, [5, 4, 3], True, True),
    ({"last": 1}, 6, 2, [3], True, True),
]


async def test_a_page_beside_cursors_tells_of_what_lies_beyond_them(
    server: ApiServer, alice: Wallet
) -> None:
    for arguments, after, before, expected, has_next, has_previous in BESIDE:
        cursors = {
            name: entry_cursor(alice.id, sequence)
            for name, sequence in {"after": after, "before": before}.items()
            if sequence
        }
        page = await history(server, alice, **arguments, **cursors)

        assert numbers(page) == expected
        assert page["pageInfo"]["hasNextPage"] is has_next
        assert page["pageInfo"]["hasPreviousPage"] is has_previous


async def test_without_a_size_the_page_is_the_one_beside_the_cursor(
    server: ApiServer,
) -> None:
    wallet = await server.books.wallet("alice")
    for _ in range(25):
        posted(await server.books.deposit(wallet.account, 1))

    page = await history(server, wallet, before=entry_cursor(wallet.id, 1))

    assert numbers(page) == list(range(21, 1, -1))

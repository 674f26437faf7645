"""The lists of all accounts and all transactions: who may read them, page by page and filtered."""

from typing import Any, Final

import pytest

from app.ledger.model import AccountKind, BalanceTracking, Scope
from app.schema.cursors import account_cursor, transaction_cursor
from app.schema.ids import encode_account_id, encode_transaction_id
from tests.schema.operators import assert_needs, auditor, book, done, operator
from tests.schema.server import ApiServer, JsonObject
from tests.support.ledger import Wallet, new_id, posted

ACCOUNTS: Final = """
query ($first: Int, $after: String, $last: Int, $before: String, $filter: AccountFilter) {
  accounts(first: $first, after: $after, last: $last, before: $before, filter: $filter) {
    totalCount edges { cursor node { id } } nodes { id code owner balance { sequence } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""

TRANSACTIONS: Final = """
query ($first: Int, $after: String, $last: Int, $before: String, $filter: TransactionFilter) {
  transactions(first: $first, after: $after, last: $last, before: $before, filter: $filter) {
    edges { cursor node { id } } nodes { id type postedAt legs { amount { decimal } } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


async def page(server: ApiServer, query: str, **arguments: Any) -> JsonObject:
    """Read a page as an auditor."""
    (found,) = (await server.ask(query, auditor(server), **arguments)).values()
    assert [edge["node"]["id"] for edge in found["edges"]] == [
        node["id"] for node in found["nodes"]
    ]
    info = found["pageInfo"]
    cursors = [edge["cursor"] for edge in found["edges"]] or [None]
    assert (info["startCursor"], info["endCursor"]) == (cursors[0], cursors[-1])
    return found


def ids(found: JsonObject) -> list[str]:
    return [node["id"] for node in found["nodes"]]


async def read_through(server: ApiServer, query: str, size: int, **arguments: Any) -> list[str]:
    """Read a whole list page by page."""
    seen: list[str] = []
    after = None
    while True:
        found = await page(server, query, first=size, after=after, **arguments)
        assert found["pageInfo"]["hasPreviousPage"] is (after is not None)
        seen += ids(found)
        after = found["pageInfo"]["endCursor"]
        if not found["pageInfo"]["hasNextPage"]:
            return seen


@pytest.fixture
async def accounts(server: ApiServer) -> list[str]:
    """Open accounts of several people and of the platform, and return their ids, oldest first."""
    opened = [
        await server.books.open(owner="alice", code="alice:main", currency="BRL"),
        await server.books.open(owner="alice", code="alice:savings", currency="USD"),
        await server.books.open(owner="bob", code="bob:main", currency="BRL"),
        await server.books.open(owner="carol", currency="BRL"),
        await server.books.open(currency="BRL", code="system:fees", kind=AccountKind.REVENUE),
    ]
    return [encode_account_id(account.id) for account in opened]


async def test_all_accounts_are_read_oldest_first_and_page_by_page(
    server: ApiServer, accounts: list[str]
) -> None:
    assert await read_through(server, ACCOUNTS, 2) == accounts
    whole = await page(server, ACCOUNTS)
    assert whole["totalCount"] == "5"
    third = whole["edges"][2]["cursor"]
    assert ids(await page(server, ACCOUNTS, last=1, before=third)) == accounts[1:2]
    assert ids(await page(server, ACCOUNTS, before=third)) == accounts[:2]
    assert ids(await page(server, ACCOUNTS, last=2)) == accounts[3:]


async def test_children_are_no_accounts_of_the_list(server: ApiServer, accounts: list[str]) -> None:
    hot = await server.books.open(
        owner="alice", currency="BRL", tracking=BalanceTracking.STRIPED, stripes=4
    )
    wallet = await server.books.wallet("dave", 100, "BRL")
    place = (
        "mutation ($input: PlaceHoldInput!) "
        "{ placeHold(input: $input) { hold { id } userErrors { code } } }"
    )
    given = {
        "idempotencyKey": "hold",
        "accountId": encode_account_id(wallet.id),
        "amount": {"minorUnits": "10", "currency": "BRL"},
    }
    await done(server, place, server.token("dave"), given)

    found = await page(server, ACCOUNTS)

    of_people = [node["id"] for node in found["nodes"] if node["owner"] is not None]
    assert of_people == [*accounts[:4], encode_account_id(hot.id), encode_account_id(wallet.id)]
    # The clearing account that the deposit to dave's wallet has opened is the platform's.
    assert found["totalCount"] == "8"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"owner": "alice"}, [0, 1]),
        ({"owner": "nobody"}, []),
        ({"owner": "alice", "currency": "BRL"}, [0]),
        ({"codePrefix": "alice:"}, [0, 1]),
        ({"codePrefix": "%"}, []),
        ({"codePrefix": ""}, [0, 1, 2, 4]),
        ({"currency": "USD"}, [1]),
        ({"kind": "REVENUE"}, [4]),
        ({"status": "ACTIVE", "codePrefix": "system:"}, [4]),
        ({"status": "CLOSED"}, []),
        ({"owner": None, "kind": None}, [0, 1, 2, 3, 4]),
        (None, [0, 1, 2, 3, 4]),
    ],
    ids=repr,
)
async def test_accounts_are_filtered_and_counted(
    server: ApiServer, accounts: list[str], wanted: JsonObject | None, expected: list[int]
) -> None:
    found = await page(server, ACCOUNTS, filter=wanted)

    assert ids(found) == [accounts[number] for number in expected]
    assert found["totalCount"] == str(len(expected))
    assert await read_through(server, ACCOUNTS, 1, filter=wanted) == ids(found)


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def transactions(server: ApiServer, alice: Wallet) -> list[str]:
    """Book transactions of several types, and return their ids, newest first; alice's deposit is the oldest."""
    bob = await server.books.wallet("bob", 0, "BRL")
    made = [
        encode_transaction_id(posted(await server.books.transfer(alice, bob, 1)).transaction.id),
        await book(server, [(alice, -2), (bob, 2)], "card_sale"),
        encode_transaction_id(posted(await server.books.transfer(bob, alice, 3)).transaction.id),
    ]
    return made[::-1]


async def test_all_transactions_are_read_newest_first_and_page_by_page(
    server: ApiServer, transactions: list[str]
) -> None:
    seen = await read_through(server, TRANSACTIONS, 2)

    assert seen[:3] == transactions
    assert len(seen) == 4
    whole = await page(server, TRANSACTIONS)
    assert [node["type"] for node in whole["nodes"]] == [
        "transfer",
        "card_sale",
        "transfer",
        "deposit",
    ]
    assert whole["nodes"][1]["legs"] == [{"amount": {"decimal": "0.02"}}] * 2
    third = whole["edges"][2]["cursor"]
    assert ids(await page(server, TRANSACTIONS, last=1, before=third)) == seen[1:2]
    assert ids(await page(server, TRANSACTIONS, before=third)) == seen[:2]
    assert ids(await page(server, TRANSACTIONS, last=1)) == seen[3:]


async def test_transactions_are_filtered(server: ApiServer, transactions: list[str]) -> None:
    whole = await page(server, TRANSACTIONS)
    everything = ids(whole)
    middle = whole["nodes"][1]["postedAt"]
    cases: list[tuple[JsonObject | None, list[str]]] = [
        ({"types": ["transfer"]}, [transactions[0], transactions[2]]),
        ({"types": ["card_sale", "deposit"]}, [everything[1], everything[3]]),
        ({"types": ["nothing"]}, []),
        ({"types": []}, []),
        ({"postedFrom": middle}, everything[:2]),
        ({"postedBefore": middle}, everything[2:]),
        ({"postedFrom": middle, "types": ["transfer"]}, everything[:1]),
        ({"postedFrom": middle, "postedBefore": middle}, []),
        (
            {"postedFrom": "0001-01-01T00:00:00Z", "postedBefore": "9999-12-31T23:59:59Z"},
            everything,
        ),
        ({"types": None, "postedFrom": None}, everything),
        (None, everything),
    ]
    for wanted, expected in cases:
        assert ids(await page(server, TRANSACTIONS, filter=wanted)) == expected, wanted
        assert await read_through(server, TRANSACTIONS, 1, filter=wanted) == expected


# ---------------------------------------------------------------- rights and mistakes


@pytest.mark.usefixtures("transactions")
async def test_who_may_read_the_lists(server: ApiServer) -> None:
    for query in (ACCOUNTS, TRANSACTIONS):
        await assert_needs(server, query, {}, (Scope.AUDIT,))


async def test_who_may_read_everything_may_not_change_anything(
    server: ApiServer, alice: Wallet
) -> None:
    query = (
        "mutation ($input: SetAccountStatusInput!) "
        "{ setAccountStatus(input: $input) { account { id } } }"
    )
    given = {"accountId": encode_account_id(alice.id), "status": "FROZEN"}
    error = await server.fail(query, auditor(server), input=given)
    assert error["extensions"] == {"code": "FORBIDDEN", "scopes": ["OPERATE"]}


async def test_g09_a_cursor_of_another_list_opens_nothing(
    server: ApiServer, accounts: list[str], alice: Wallet
) -> None:
    own, foreign = account_cursor(None, alice.id), account_cursor("auditor", alice.id)
    transaction = transaction_cursor(new_id())
    # A cursor is a place, whether anything stands there or not.
    assert ids(await page(server, TRANSACTIONS, before=transaction)) == []
    assert ids(await page(server, ACCOUNTS, before=own, first=5)) == accounts
    for query, forged in (
        (ACCOUNTS, foreign),
        (ACCOUNTS, transaction),
        (ACCOUNTS, own[:-1]),
        (TRANSACTIONS, own),
        (TRANSACTIONS, ""),
        (TRANSACTIONS, "A" * 40),
    ):
        for side in ("after", "before"):
            error = await server.fail(query, auditor(server), **{side: forged})
            assert error["extensions"] == {"code": "INVALID_CURSOR"}


async def test_g09_a_silly_page_is_a_bad_request(server: ApiServer) -> None:
    silly: list[JsonObject] = [
        {"first": 0},
        {"last": -1},
        {"first": 101},
        {"first": 1, "last": 1},
    ]
    for query in (ACCOUNTS, TRANSACTIONS):
        for arguments in silly:
            error = await server.fail(query, auditor(server), **arguments)
            assert error["extensions"] == {"code": "BAD_REQUEST"}
    for wanted in ({"codePrefix": "\0"}, {"owner": "nul\0"}, {"kind": "WALLET"}):
        error = await server.fail(ACCOUNTS, auditor(server), filter=wanted)
        assert error["extensions"] == {"code": "BAD_REQUEST"}
    error = await server.fail(TRANSACTIONS, auditor(server), filter={"types": ["nul\0"]})
    assert error["extensions"] == {"code": "BAD_REQUEST"}


async def test_the_account_that_was_opened_by_an_operator_shows_no_money(
    server: ApiServer,
) -> None:
    query = (
        "mutation ($input: OpenAccountInput!) "
        "{ openAccount(input: $input) { account { id balance { sequence } } } }"
    )
    given = {"idempotencyKey": "open", "currency": "BRL", "owner": "carol"}
    answer = (await server.post(query, {"input": given}, token=operator(server))).json()
    assert answer["data"] == {"openAccount": {"account": None}}
    assert answer["errors"][0]["extensions"] == {"code": "FORBIDDEN", "scopes": ["AUDIT"]}

"""Mutations that move money: what they answer, and that a refusal changes nothing."""

import asyncio
from typing import Any, Final

import pytest

from app.ledger.model import Scope
from app.schema.ids import encode_account_id
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import Wallet, new_id

TRANSFER = """
mutation Transfer($input: TransferInput!) {
  transfer(input: $input) {
    replayed
    transaction {
      id type description metadata effectiveAt postedAt reverses { id } reversedBy { id }
      legs { direction amount { minorUnits decimal currency } account { id code currency purpose } }
    }
    entries {
      id sequence direction amount { decimal } balanceAfter { minorUnits } transaction { id }
      account { id }
    }
    userErrors {
      __typename code message path retryable
      ... on InsufficientFunds {
        accountId available { minorUnits } required { minorUnits } shortfall { decimal }
      }
      ... on IdempotencyConflict { transactionId differingFields }
    }
  }
}
"""

BATCH = """
mutation Batch($input: TransferBatchInput!) {
  transferBatch(input: $input) {
    results { transaction { id } replayed userErrors { code path } }
    userErrors { code path message }
  }
}
"""


def transfer_input(
    source: Wallet, target: Wallet, minor_units: object = "100", **more: Any
) -> JsonObject:
    return {
        "idempotencyKey": "key-1",
        "fromAccountId": account_id(source),
        "toAccountId": account_id(target),
        "amount": {"minorUnits": minor_units, "currency": source.account.currency},
        **more,
    }


async def refusal_of(server: ApiServer, given: JsonObject) -> JsonObject:
    """Send a transfer that must be refused, and see that it has changed nothing."""
    before = await server.booked()
    payload = (await server.ask(TRANSFER, input=given))["transfer"]
    assert payload["transaction"] is None
    assert payload["entries"] == []
    assert payload["replayed"] is False
    assert await server.booked() == before
    (refusal,) = payload["userErrors"]
    return refusal


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def bob(server: ApiServer) -> Wallet:
    return await server.books.wallet("bob", 0, "BRL")


async def test_a_transfer_answers_both_sides_and_the_callers_entries(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    given = transfer_input(alice, bob, description="lunch", metadata={"table": 7})

    payload = (await server.ask(TRANSFER, input=given))["transfer"]

    assert payload["userErrors"] == []
    assert payload["replayed"] is False
    transaction = payload["transaction"]
    assert transaction["type"] == "transfer"
    assert transaction["description"] == "lunch"
    assert transaction["metadata"] == {"table": 7}
    assert transaction["effectiveAt"] == transaction["postedAt"]
    assert transaction["postedAt"].endswith("Z")
    assert transaction["reverses"] is None
    assert transaction["reversedBy"] == []
    assert [(leg["direction"], leg["amount"]["decimal"]) for leg in transaction["legs"]] == [
        ("DEBIT", "1.00"),
        ("CREDIT", "1.00"),
    ]
    assert [leg["account"]["id"] for leg in transaction["legs"]] == [
        account_id(alice),
        account_id(bob),
    ]
    (entry,) = payload["entries"]
    assert entry["account"] == {"id": account_id(alice)}
    assert entry["amount"] == {"decimal": "-1.00"}
    assert entry["sequence"] == "2"
    assert entry["balanceAfter"] == {"minorUnits": "900"}
    assert entry["transaction"] == {"id": transaction["id"]}


async def test_a_repeated_request_answers_the_same_once_more_and_books_nothing(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    given = transfer_input(alice, bob, metadata={"a": 1, "b": 2}, description=None)
    first = (await server.ask(TRANSFER, input=given))["transfer"]
    before = await server.booked()
    again = transfer_input(alice, bob, 100, metadata={"b": 2, "a": 1})

    second = (await server.ask(TRANSFER, input=again))["transfer"]

    assert second == {**first, "replayed": True}
    assert await server.booked() == before


async def test_the_same_key_for_another_request_names_what_differs(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    first = (await server.ask(TRANSFER, input=transfer_input(alice, bob)))["transfer"]

    refusal = await refusal_of(server, transfer_input(alice, bob, "101", description="more"))

    assert refusal["__typename"] == "IdempotencyConflict"
    assert refusal["code"] == "IDEMPOTENCY_CONFLICT"
    assert refusal["path"] == ["input", "idempotencyKey"]
    assert refusal["retryable"] is False
    assert refusal["transactionId"] == first["transaction"]["id"]
    assert refusal["differingFields"] == ["amount", "description"]


async def test_missing_money_is_refused_with_the_amounts(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    refusal = await refusal_of(server, transfer_input(alice, bob, "1001"))

    assert refusal == {
        "__typename": "InsufficientFunds",
        "code": "INSUFFICIENT_FUNDS",
        "message": "The account has 10.00 BRL available, but 10.01 BRL is needed.",
        "path": ["input", "amount", "minorUnits"],
        "retryable": True,
        "accountId": account_id(alice),
        "available": {"minorUnits": "1000"},
        "required": {"minorUnits": "1001"},
        "shortfall": {"decimal": "0.01"},
    }


async def test_l11_nobody_pays_the_account_that_the_money_comes_from(
    server: ApiServer, alice: Wallet
) -> None:
    refusal = await refusal_of(server, transfer_input(alice, alice))

    assert refusal["code"] == "SAME_ACCOUNT"
    assert refusal["path"] == ["input", "toAccountId"]


@pytest.mark.parametrize("spelling", ["lower", "upper", "padded", "spaced"])
async def test_l11_another_spelling_of_an_id_names_no_account(
    server: ApiServer, alice: Wallet, spelling: str
) -> None:
    own = account_id(alice)
    spelt = {"lower": own.lower(), "upper": own.upper(), "padded": own + "=", "spaced": own + " "}

    refusal = await refusal_of(
        server, {**transfer_input(alice, alice), "toAccountId": spelt[spelling]}
    )

    assert refusal["code"] == "ACCOUNT_NOT_FOUND"
    assert refusal["path"] == ["input", "toAccountId"]


async def test_l12_an_amount_of_another_currency_is_refused(
    server: ApiServer, alice: Wallet
) -> None:
    dollars = await server.books.wallet("bob", 0, "USD")

    refusal = await refusal_of(server, transfer_input(alice, dollars))

    assert refusal["code"] == "CURRENCY_MISMATCH"
    assert refusal["message"] == "The amount is in BRL, but the account is in USD."
    assert refusal["path"] == ["input", "amount", "currency"]


async def test_l12_what_is_no_currency_is_a_bad_request(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    for currency in ("brl", "BRL ", "XXX", "840", "\uff22\uff32\uff2c", ""):
        given = transfer_input(alice, bob)
        given["amount"]["currency"] = currency

        error = await server.fail(TRANSFER, input=given)

        assert error["extensions"] == {"code": "BAD_REQUEST"}


@pytest.mark.parametrize(
    ("currency", "minor_units", "decimal"),
    [("JPY", 1, "1"), ("USD", 1, "0.01"), ("KWD", 1_234, "1.234")],
)
async def test_l12_the_same_amount_reads_the_same_everywhere(
    server: ApiServer, currency: str, minor_units: int, decimal: str
) -> None:
    alice = await server.books.wallet("alice", minor_units, currency)

    data = await server.ask(
        """
        query ($id: ID!) {
          account(id: $id) {
            balance { posted { minorUnits decimal } }
            entries(first: 1) { nodes { amount { decimal } transaction { legs { amount { decimal } } } } }
          }
        }
        """,
        id=account_id(alice),
    )

    account = data["account"]
    assert account["balance"]["posted"] == {"minorUnits": str(minor_units), "decimal": decimal}
    (entry,) = account["entries"]["nodes"]
    assert entry["amount"] == {"decimal": decimal}
    assert {leg["amount"]["decimal"] for leg in entry["transaction"]["legs"]} == {decimal}


BROKEN_RULES: Final[list[tuple[JsonObject, str, list[str]]]] = [
    ({"idempotencyKey": ""}, "INVALID_INPUT", ["input", "idempotencyKey"]),
    ({"idempotencyKey": "k" * 129}, "INVALID_INPUT", ["input", "idempotencyKey"]),
    ({"idempotencyKey": "nul\0"}, "INVALID_INPUT", ["input", "idempotencyKey"]),
    ({"description": "d" * 501}, "INVALID_INPUT", ["input", "description"]),
    ({"description": "nul\0"}, "INVALID_INPUT", ["input", "description"]),
    ({"metadata": [1]}, "INVALID_INPUT", ["input", "metadata"]),
    ({"metadata": {"nul": "\0"}}, "INVALID_INPUT", ["input", "metadata"]),
    ({"metadata": {"long": "x" * 4_096}}, "INVALID_INPUT", ["input", "metadata"]),
    (
        {"amount": {"minorUnits": "0", "currency": "BRL"}},
        "INVALID_AMOUNT",
        ["input", "amount", "minorUnits"],
    ),
    (
        {"amount": {"minorUnits": "-1", "currency": "BRL"}},
        "INVALID_AMOUNT",
        ["input", "amount", "minorUnits"],
    ),
    ({"toAccountId": "no id"}, "ACCOUNT_NOT_FOUND", ["input", "toAccountId"]),
    (
        {"toAccountId": encode_account_id(new_id())},
        "ACCOUNT_NOT_FOUND",
        ["input", "toAccountId"],
    ),
]


async def test_what_breaks_a_rule_is_refused_where_it_stands(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    for changed, code, path in BROKEN_RULES:
        refusal = await refusal_of(server, {**transfer_input(alice, bob), **changed})

        assert refusal["__typename"] == "Refusal"
        assert (refusal["code"], refusal["path"]) == (code, path)
        assert refusal["message"].endswith(".")


async def test_g11_money_of_others_can_t_be_sent(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    refusal = await refusal_of(server, transfer_input(bob, alice))

    assert refusal["code"] == "ACCOUNT_NOT_FOUND"
    assert refusal["path"] == ["input", "fromAccountId"]


async def test_g06_the_fields_of_one_request_are_independent(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    query = """
    mutation ($a: TransferInput!, $b: TransferInput!, $c: TransferInput!) {
      a: transfer(input: $a) { ...outcome }
      b: transfer(input: $b) { ...outcome }
      c: transfer(input: $c) { ...outcome }
    }
    fragment outcome on PostingPayload {
      replayed
      entries { balanceAfter { minorUnits } account { balance { available { minorUnits } } } }
      userErrors { code path }
    }
    """
    variables = {
        "a": transfer_input(alice, bob, "400", idempotencyKey="a"),
        "b": transfer_input(alice, bob, "700", idempotencyKey="b"),
        "c": transfer_input(alice, bob, "600", idempotencyKey="c"),
    }

    first = await server.ask(query, None, **variables)
    second = await server.ask(query, None, **variables)

    # Each field sees what those before it have done, and what it reads is no older than itself.
    assert first["a"]["entries"] == [_standing("600")]
    assert first["b"]["userErrors"] == [
        {"code": "INSUFFICIENT_FUNDS", "path": ["input", "amount", "minorUnits"]}
    ]
    assert first["c"]["entries"] == [_standing("0")]
    assert [second[name]["replayed"] for name in "abc"] == [True, False, True]
    assert await server.books.available(alice) == 0
    assert await server.books.available(bob) == 1_000


async def test_g06_a_failed_field_doesn_t_hide_what_was_done_before_it(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    query = """
    mutation ($a: TransferInput!, $deposit: DepositInput!, $c: TransferInput!) {
      a: transfer(input: $a) { transaction { id } }
      deposit(input: $deposit) { transaction { id } }
      c: transfer(input: $c) { transaction { id } }
    }
    """
    variables = {
        "a": transfer_input(alice, bob, idempotencyKey="a"),
        "deposit": {
            "idempotencyKey": "deposit",
            "accountId": account_id(alice),
            "amount": {"minorUnits": "100", "currency": "BRL"},
        },
        "c": transfer_input(alice, bob, idempotencyKey="c"),
    }

    response = await server.post(query, variables, token=server.token())

    answer = response.json()
    assert response.status_code == 200
    assert answer["data"] is None
    (error,) = answer["errors"]
    assert error["path"] == ["deposit"]
    assert error["extensions"]["code"] == "FORBIDDEN"
    (done,) = answer["extensions"]["carriedOut"]
    assert done["path"] == ["a"]
    assert done["replayed"] is False
    key = "query ($key: String!) { transactionByIdempotencyKey(idempotencyKey: $key) { id } }"
    found = await server.ask(key, key="a")
    assert found["transactionByIdempotencyKey"] == {"id": done["transactionId"]}
    # The fields after the one that failed were not tried.
    assert (await server.ask(key, key="c"))["transactionByIdempotencyKey"] is None


async def test_a_batch_answers_each_transfer_in_its_place(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    transfers = [
        transfer_input(alice, bob, "600", idempotencyKey="1"),
        transfer_input(alice, bob, "600", idempotencyKey="2"),
        transfer_input(alice, bob, "-1", idempotencyKey="3"),
        transfer_input(alice, bob, "400", idempotencyKey="4"),
    ]

    batch = (await server.ask(BATCH, input={"transfers": transfers}))["transferBatch"]

    assert batch["userErrors"] == []
    assert [result["transaction"] is not None for result in batch["results"]] == [
        True,
        False,
        False,
        True,
    ]
    assert batch["results"][1]["userErrors"] == [
        {
            "code": "INSUFFICIENT_FUNDS",
            "path": ["input", "transfers", "1", "amount", "minorUnits"],
        }
    ]
    assert batch["results"][2]["userErrors"] == [
        {"code": "INVALID_AMOUNT", "path": ["input", "transfers", "2", "amount", "minorUnits"]}
    ]
    assert await server.books.available(bob) == 1_000


async def test_an_atomic_batch_is_made_wholly_or_not_at_all(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    before = await server.booked()
    transfers = [
        transfer_input(alice, bob, "600", idempotencyKey="1"),
        transfer_input(alice, bob, "600", idempotencyKey="2"),
    ]

    refused = (await server.ask(BATCH, input={"transfers": transfers, "atomic": True}))[
        "transferBatch"
    ]

    assert await server.booked() == before
    assert [result["transaction"] for result in refused["results"]] == [None, None]
    assert [len(result["userErrors"]) for result in refused["results"]] == [0, 1]


async def test_a_batch_of_a_thousand_is_made_and_one_more_is_refused(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    transfers = [
        transfer_input(alice, bob, "1", idempotencyKey=str(number)) for number in range(1_001)
    ]
    before = await server.booked()

    refused = (await server.ask(BATCH, input={"transfers": transfers}))["transferBatch"]
    assert refused["results"] == []
    assert refused["userErrors"] == [
        {
            "code": "INVALID_INPUT",
            "path": ["input", "transfers"],
            "message": "transfers must have at most 1000 transfers.",
        }
    ]
    assert await server.booked() == before

    made = (await server.ask(BATCH, input={"transfers": transfers[:1_000]}))["transferBatch"]
    assert all(result["transaction"] for result in made["results"])
    assert await server.books.available(alice) == 0


DEPOSIT = """
mutation ($input: DepositInput!) {
  deposit(input: $input) {
    transaction {
      type externalReference effectiveAt
      legs { direction account { code } amount { decimal } }
    }
    entries { account { code owner } amount { minorUnits } }
    userErrors { code path }
  }
}
"""


async def test_a_deposit_goes_against_the_clearing_account_of_its_currency(
    server: ApiServer, bob: Wallet
) -> None:
    given = {
        "idempotencyKey": "deposit",
        "accountId": account_id(bob),
        "amount": {"minorUnits": "250", "currency": "BRL"},
        "externalReference": "bank-42",
        "effectiveAt": "2026-01-31T23:30:00-03:00",
    }
    operator = server.token("operator", Scope.OPERATE)

    payload = (await server.ask(DEPOSIT, operator, input=given))["deposit"]

    assert payload["userErrors"] == []
    assert payload["entries"] == []  # The operator may post, which is not to read.
    assert payload["transaction"] == {
        "type": "deposit",
        "externalReference": "bank-42",
        "effectiveAt": "2026-02-01T02:30:00.000000Z",
        "legs": [
            {
                "direction": "DEBIT",
                "account": {"code": "system:bank_clearing:BRL"},
                "amount": {"decimal": "2.50"},
            },
            {"direction": "CREDIT", "account": {"code": None}, "amount": {"decimal": "2.50"}},
        ],
    }
    auditor = server.token("operator", Scope.OPERATE, Scope.AUDIT)
    seen = (await server.ask(DEPOSIT, auditor, input=given))["deposit"]
    # Both sides grow: the clearing account is what the platform has, the wallet what it owes.
    assert [entry["amount"]["minorUnits"] for entry in seen["entries"]] == ["250", "250"]


async def test_a_named_clearing_account_that_isn_t_there_is_not_replaced_by_the_default(
    server: ApiServer, bob: Wallet
) -> None:
    given = {
        "idempotencyKey": "deposit",
        "accountId": account_id(bob),
        "clearingAccountId": "nothing",
        "amount": {"minorUnits": "250", "currency": "BRL"},
    }
    before = await server.booked()

    payload = (await server.ask(DEPOSIT, server.token("op", Scope.OPERATE), input=given))["deposit"]

    assert payload["userErrors"] == [
        {"code": "ACCOUNT_NOT_FOUND", "path": ["input", "clearingAccountId"]}
    ]
    assert await server.booked() == before


async def test_f01_an_answer_is_followed_by_no_older_balance(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    read = """
    query ($id: ID!) {
      account(id: $id) {
        balance { available { minorUnits } sequence }
        entries(first: 1) { nodes { sequence balanceAfter { minorUnits } } }
      }
    }
    """
    for number in range(25):
        given = transfer_input(alice, bob, "1", idempotencyKey=str(number))
        (entry,) = (await server.ask(TRANSFER, input=given))["transfer"]["entries"]
        account = (await server.ask(read, id=account_id(alice)))["account"]
        assert account["balance"]["available"] == entry["balanceAfter"]
        assert account["balance"]["sequence"] == entry["sequence"]
        assert account["entries"]["nodes"] == [
            {"sequence": entry["sequence"], "balanceAfter": entry["balanceAfter"]}
        ]


async def test_identical_requests_that_race_book_one_transfer(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    given = transfer_input(alice, bob)

    answers = await asyncio.gather(*(server.ask(TRANSFER, input=given) for _ in range(20)))

    payloads = [answer["transfer"] for answer in answers]
    assert len({payload["transaction"]["id"] for payload in payloads}) == 1
    assert sorted(payload["replayed"] for payload in payloads) == [False] + [True] * 19
    assert await server.books.available(bob) == 100


async def test_f05_amounts_beyond_a_double_arrive_as_they_were_sent(server: ApiServer) -> None:
    exact = 9_007_199_254_740_993
    alice = await server.books.wallet("alice", exact, "BRL")
    bob = await server.books.wallet("bob", 0, "BRL")

    error = await server.fail(TRANSFER, input=transfer_input(alice, bob, exact))
    assert error["extensions"]["code"] == "BAD_REQUEST"

    response = await server.post(
        TRANSFER,
        {"input": transfer_input(alice, bob, str(exact))},
        token=server.token(),
    )
    assert f'"minorUnits":"{exact}"' in response.text
    assert await server.books.available(bob) == exact


def _standing(minor_units: str) -> JsonObject:
    return {
        "balanceAfter": {"minorUnits": minor_units},
        "account": {"balance": {"available": {"minorUnits": minor_units}}},
    }

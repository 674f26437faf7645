"""General postings: any balanced legs, and accounts of every kind and tracking as they come out of them."""

from typing import Any, Final

import pytest

from app.ledger.model import Account, AccountKind, Scope
from app.schema.ids import encode_account_id
from tests.schema.operators import (
    WHY,
    assert_needs,
    auditor,
    balances,
    book,
    done,
    everything,
    money,
    operator,
    refused,
    told,
)
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import Wallet, new_id

POSTING: Final = f"""
  transaction {{
    id type description metadata effectiveAt postedAt
    legs {{ direction amount {{ minorUnits currency }} account {{ id code purpose }} }}
  }}
  entries {{
    id sequence direction amount {{ minorUnits }} balanceAfter {{ minorUnits }} account {{ id }}
  }}
  replayed {WHY}
"""

POST: Final = f"""
mutation ($input: PostTransactionInput!) {{ postTransaction(input: $input) {{ {POSTING} }} }}
"""

SWEEP: Final = f"""
mutation ($input: SweepAccountInput!) {{ sweepAccount(input: $input) {{ {POSTING} }} }}
"""


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def shop(server: ApiServer) -> Wallet:
    return await server.books.wallet("shop", 0, "BRL")


@pytest.fixture
async def fees(server: ApiServer) -> Account:
    return await server.books.open(currency="BRL", kind=AccountKind.REVENUE, code="system:fees")


@pytest.fixture
async def bank(server: ApiServer) -> Account:
    return await server.books.clearing("BRL")


def leg(account: Account | Wallet, signed: int, currency: str = "BRL", **more: Any) -> JsonObject:
    """Write a leg; a positive amount is a credit."""
    return {
        "accountId": account_id(account),
        "direction": "CREDIT" if signed > 0 else "DEBIT",
        "amount": money(abs(signed), currency),
        **more,
    }


def posting(*legs: JsonObject, **more: Any) -> JsonObject:
    return {"idempotencyKey": "post", "type": "card_sale", "legs": list(legs), **more}


def reader(server: ApiServer) -> str:
    """Issue the token of who may both operate and read."""
    return server.token("op", Scope.OPERATE, Scope.AUDIT)


async def test_a_sale_is_split_over_accounts_of_every_kind(
    server: ApiServer, shop: Wallet, fees: Account, bank: Account
) -> None:
    given = posting(
        leg(bank, -10_000),
        leg(shop, 9_750),
        leg(fees, 250),
        effectiveAt="2026-01-31T23:30:00-03:00",
        description="order 7",
        metadata={"terminal": "T1"},
    )

    payload = await done(server, POST, reader(server), given)

    transaction = payload["transaction"]
    assert transaction.pop("id")
    assert transaction.pop("postedAt").endswith("Z")
    assert transaction == {
        "type": "card_sale",
        "description": "order 7",
        "metadata": {"terminal": "T1"},
        "effectiveAt": "2026-02-01T02:30:00.000000Z",
        "legs": [
            {
                "direction": direction,
                "amount": money(amount),
                "account": {"id": account_id(account), "code": code, "purpose": "MAIN"},
            }
            for direction, amount, account, code in (
                ("DEBIT", 10_000, bank, None),
                ("CREDIT", 9_750, shop, None),
                ("CREDIT", 250, fees, "system:fees"),
            )
        ],
    }
    # Each entry is seen from its account's normal side, so all three grow.
    assert [
        (
            entry["account"]["id"],
            entry["sequence"],
            entry["amount"]["minorUnits"],
            entry["balanceAfter"]["minorUnits"],
        )
        for entry in payload["entries"]
    ] == [
        (account_id(bank), "1", "10000", "10000"),
        (account_id(shop), "1", "9750", "9750"),
        (account_id(fees), "1", "250", "250"),
    ]


async def test_each_currency_balances_for_itself(server: ApiServer, alice: Wallet) -> None:
    euros = await server.books.wallet("alice", 0, "EUR")
    positions = [
        await server.books.open(currency=currency, kind=AccountKind.EQUITY, allow_negative=True)
        for currency in ("BRL", "EUR")
    ]
    given = posting(
        leg(alice, -600),
        leg(positions[0], 600),
        leg(positions[1], -100, "EUR"),
        leg(euros, 100, "EUR"),
        type="exchange",
    )

    payload = await done(server, POST, operator(server), given)

    assert payload["entries"] == []  # Who may operate may not read.
    assert await balances(server, alice) == (400, 0)
    assert await balances(server, euros) == (100, 0)
    assert await balances(server, positions[1]) == (-100, 0)


async def test_an_account_may_stand_in_several_legs_of_one_side(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    given = posting(leg(alice, -100), leg(shop, 60), leg(shop, 40))

    payload = await done(server, POST, reader(server), given)

    assert [entry["sequence"] for entry in payload["entries"]] == ["2", "1", "2"]
    assert await balances(server, shop) == (100, 0)


async def test_two_hundred_legs_are_booked_and_no_more(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    legs = [leg(alice, -199), *(leg(shop, 1) for _ in range(199))]
    too_many = [*legs, leg(shop, 1)]
    refusal = await refused(server, POST, operator(server), posting(*too_many))
    assert told(refusal) == ("INVALID_INPUT", ["legs"])

    payload = await done(server, POST, reader(server), posting(*legs))

    assert len(payload["transaction"]["legs"]) == 200
    assert len(payload["entries"]) == 200
    assert await balances(server, shop) == (199, 0)


async def test_a_condition_on_the_sequence_is_judged(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    stale = posting(leg(alice, -1), leg(shop, 1, ifSequence="1"))
    refusal = await refused(server, POST, operator(server), stale)
    assert told(refusal) == ("SEQUENCE_MISMATCH", ["legs", "1", "ifSequence"])
    assert refusal["message"] == "The account stands at sequence 0, not at 1."
    assert refusal["retryable"] is False

    await done(
        server,
        POST,
        operator(server),
        posting(leg(alice, -1, ifSequence="1"), leg(shop, 1, ifSequence=0)),
    )


# ---------------------------------------------------------------- replays


async def test_a_repeated_request_answers_the_same_once_more(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    given = posting(leg(alice, -5), leg(shop, 5), metadata={"a": 1, "b": 2})
    first = await done(server, POST, reader(server), given)
    before = await everything(server)

    again = posting(
        leg(alice, -5, ifSequence=None),
        leg(shop, 5, amount={"minorUnits": 5, "currency": "BRL"}),
        metadata={"b": 2, "a": 1},
        description=None,
    )

    assert await done(server, POST, reader(server), again) == {**first, "replayed": True}
    assert await everything(server) == before


async def test_the_same_key_for_another_request_names_what_differs(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    first = await done(server, POST, operator(server), posting(leg(alice, -5), leg(shop, 5)))

    changed = posting(leg(alice, -6), leg(shop, 6), type="correction")
    refusal = await refused(server, POST, operator(server), changed)

    assert told(refusal) == ("IDEMPOTENCY_CONFLICT", ["idempotencyKey"])
    assert refusal["transactionId"] == first["transaction"]["id"]
    assert refusal["differingFields"] == ["legs", "type"]


# ---------------------------------------------------------------- refusals


async def test_what_breaks_a_rule_is_refused_where_it_stands(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    out, into = leg(alice, -100), leg(shop, 100)
    dollars = await server.books.wallet("shop", 0, "USD")
    nobody = {"accountId": encode_account_id(new_id())}
    broken: list[tuple[JsonObject, str, list[str]]] = [
        (posting(out, into, idempotencyKey=""), "INVALID_INPUT", ["idempotencyKey"]),
        (posting(out, into, description="d" * 501), "INVALID_INPUT", ["description"]),
        (posting(out, into, metadata=[1]), "INVALID_INPUT", ["metadata"]),
        (
            posting(out, into, effectiveAt="0001-01-01T00:00:00Z"),
            "INVALID_INPUT",
            ["effectiveAt"],
        ),
        (posting(), "INVALID_INPUT", ["legs"]),
        (posting(out), "INVALID_INPUT", ["legs"]),
        (
            posting(out, {**into, "amount": money(0)}),
            "INVALID_AMOUNT",
            ["legs", "1", "amount", "minorUnits"],
        ),
        (
            posting({**out, "amount": money(-100)}, into),
            "INVALID_AMOUNT",
            ["legs", "0", "amount", "minorUnits"],
        ),
        (
            posting(out, {**into, "accountId": "no id"}),
            "ACCOUNT_NOT_FOUND",
            ["legs", "1", "accountId"],
        ),
        (posting(out, {**into, **nobody}), "ACCOUNT_NOT_FOUND", ["legs", "1", "accountId"]),
        (posting(out, leg(alice, 100)), "SAME_ACCOUNT", ["legs", "1", "accountId"]),
        (posting(out, leg(shop, 99)), "UNBALANCED", ["legs"]),
        (posting(out, leg(dollars, 100, "USD")), "UNBALANCED", ["legs"]),
        (
            posting(out, leg(dollars, 100)),
            "CURRENCY_MISMATCH",
            ["legs", "1", "amount", "currency"],
        ),
        (
            posting(leg(alice, -1_001), leg(shop, 1_001)),
            "INSUFFICIENT_FUNDS",
            ["legs", "0", "amount", "minorUnits"],
        ),
    ]
    for given, code, path in broken:
        refusal = await refused(server, POST, operator(server), given)
        assert told(refusal) == (code, path)


async def test_what_doesn_t_balance_is_refused_with_both_sums(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    most = 2**63 - 1
    given = posting(leg(alice, -100), leg(shop, 99))
    refusal = await refused(server, POST, operator(server), given)
    assert refusal["message"] == "Debits of 1.00 BRL and credits of 0.99 BRL differ."
    # Sums beyond 64 bits are told as they are.
    given = posting(leg(alice, -100), leg(shop, most), leg(shop, most))
    refusal = await refused(server, POST, operator(server), given)
    assert refusal["message"] == (
        "Debits of 1.00 BRL and credits of 184467440737095516.14 BRL differ."
    )


@pytest.mark.parametrize(
    "name",
    ["", "Sale", "sale ", "_sale", "sale_", "sa__le", "1sale", "s" * 33, "transfer", "opening"],
)
async def test_a_type_is_lower_case_words_and_no_built_in_name(
    server: ApiServer, alice: Wallet, shop: Wallet, name: str
) -> None:
    given = posting(leg(alice, -1), leg(shop, 1), type=name)
    assert told(await refused(server, POST, operator(server), given)) == ("INVALID_INPUT", ["type"])


async def test_accounts_that_are_frozen_or_closed_take_no_part(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    change = (
        "mutation ($input: SetAccountStatusInput!) "
        "{ setAccountStatus(input: $input) { account { id } userErrors { code } } }"
    )
    given = posting(leg(alice, -1), leg(shop, 1))
    for status, code in (("FROZEN", "ACCOUNT_FROZEN"), ("CLOSED", "ACCOUNT_CLOSED")):
        changed = {"accountId": account_id(shop), "status": status}
        await done(server, change, operator(server), changed)
        refusal = await refused(server, POST, operator(server), given)
        assert told(refusal) == (code, ["legs", "1", "accountId"])
        assert refusal["retryable"] is (code == "ACCOUNT_FROZEN")


# ---------------------------------------------------------------- hot accounts

OPEN: Final = f"""
mutation ($input: OpenAccountInput!) {{
  openAccount(input: $input) {{ account {{ id tracking allowNegative }} replayed {WHY} }}
}}
"""

HISTORY: Final = """
query ($id: ID!, $first: Int, $after: String) {
  account(id: $id) {
    tracking balance { available { minorUnits } sequence }
    entries(first: $first, after: $after) {
      totalCount nodes { id sequence amount { minorUnits } balanceAfter { minorUnits } }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""


async def opened(server: ApiServer, **more: Any) -> str:
    given = {"idempotencyKey": "open", "currency": "BRL", "owner": None, **more}
    return (await done(server, OPEN, operator(server), given))["account"]["id"]


async def test_a_striped_account_reads_as_one(server: ApiServer, alice: Wallet) -> None:
    hot = await opened(server, tracking="STRIPED", stripes=4)
    entry_ids: list[str] = []
    for number in range(1, 6):
        into = {"accountId": hot, "direction": "CREDIT", "amount": money(number)}
        given = posting(leg(alice, -number), into, idempotencyKey=str(number))
        payload = await done(server, POST, reader(server), given)
        _, entry = payload["entries"]
        assert entry["sequence"] is None
        assert entry["balanceAfter"] == {"minorUnits": str(sum(range(number + 1)))}
        assert payload["transaction"]["legs"][1]["account"] == {
            "id": hot,
            "code": None,
            "purpose": "STRIPE",
        }
        entry_ids.append(entry["id"])

    first = (await server.ask(HISTORY, auditor(server), id=hot, first=3))["account"]
    after = first["entries"]["pageInfo"]["endCursor"]
    rest = (await server.ask(HISTORY, auditor(server), id=hot, after=after))["account"]
    shown = first["entries"]["nodes"] + rest["entries"]["nodes"]

    assert first["tracking"] == "STRIPED"
    assert first["balance"] == {"available": {"minorUnits": "15"}, "sequence": None}
    assert [node["id"] for node in shown] == entry_ids[::-1]
    assert [node["balanceAfter"]["minorUnits"] for node in shown] == ["15", "10", "6", "3", "1"]
    assert (first["entries"]["totalCount"], rest["entries"]["pageInfo"]["hasNextPage"]) == (
        "5",
        False,
    )
    query = "query ($id: ID!) { node(id: $id) { ... on Entry { id balanceAfter { minorUnits } } } }"
    assert (await server.ask(query, auditor(server), id=entry_ids[2]))["node"] == {
        "id": entry_ids[2],
        "balanceAfter": {"minorUnits": "6"},
    }


async def test_a_derived_account_keeps_no_balance_after_each_entry(
    server: ApiServer, alice: Wallet
) -> None:
    hot = await opened(server, tracking="DERIVED", kind="REVENUE", allowNegative=True)
    into = {"accountId": hot, "direction": "CREDIT", "amount": money(30)}
    given = posting(leg(alice, -30), into)

    payload = await done(server, POST, reader(server), given)

    assert (payload["entries"][1]["sequence"], payload["entries"][1]["balanceAfter"]) == (
        None,
        None,
    )
    assert await done(server, POST, reader(server), given) == {**payload, "replayed": True}
    account = (await server.ask(HISTORY, auditor(server), id=hot))["account"]
    assert account["balance"] == {"available": {"minorUnits": "30"}, "sequence": None}
    (node,) = account["entries"]["nodes"]
    assert (node["sequence"], node["balanceAfter"]) == (None, None)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"tracking": "STRIPED", "stripes": 1}, ["stripes"]),
        ({"tracking": "STRIPED", "stripes": 257}, ["stripes"]),
        ({"tracking": "TRACKED", "stripes": 2}, ["stripes"]),
        ({"tracking": "DERIVED", "stripes": 2, "allowNegative": True}, ["stripes"]),
        ({"tracking": "DERIVED"}, ["allowNegative"]),
    ],
    ids=repr,
)
async def test_a_hot_account_that_breaks_a_rule_is_not_opened(
    server: ApiServer, changed: JsonObject, path: list[str]
) -> None:
    given = {"idempotencyKey": "open", "currency": "BRL", "owner": None, **changed}
    refusal = await refused(server, OPEN, operator(server), given)
    assert told(refusal) == ("INVALID_INPUT", path)


async def test_a_condition_on_a_hot_account_is_refused(server: ApiServer, alice: Wallet) -> None:
    hot = await opened(server, tracking="STRIPED", stripes=2)
    into = {"accountId": hot, "direction": "CREDIT", "amount": money(1), "ifSequence": "0"}
    refusal = await refused(server, POST, operator(server), posting(leg(alice, -1), into))
    assert told(refusal) == ("INVALID_INPUT", ["legs", "1", "ifSequence"])


async def fill(server: ApiServer, alice: Wallet, hot: str) -> None:
    """Pay a striped account so often that more than its first stripe has money."""
    for number in range(12):
        into = {"accountId": hot, "direction": "CREDIT", "amount": money(1)}
        given = posting(leg(alice, -1), into, idempotencyKey=f"fill {number}")
        await done(server, POST, operator(server), given)


async def test_a_sweep_gathers_the_stripes_and_changes_no_balance(
    server: ApiServer, alice: Wallet
) -> None:
    hot = await opened(server, tracking="STRIPED", stripes=16)
    await fill(server, alice, hot)
    given = {"idempotencyKey": "sweep", "accountId": hot}

    payload = await done(server, SWEEP, reader(server), given)

    transaction = payload["transaction"]
    assert transaction["type"] == "sweep"
    assert {leg["account"]["id"] for leg in transaction["legs"]} == {hot}
    assert {leg["account"]["purpose"] for leg in transaction["legs"]} == {"STRIPE"}
    *given_up, gathered = transaction["legs"]
    assert {leg["direction"] for leg in given_up} == {"DEBIT"}
    assert gathered["direction"] == "CREDIT"
    assert int(gathered["amount"]["minorUnits"]) == sum(
        int(leg["amount"]["minorUnits"]) for leg in given_up
    )
    account = (await server.ask(HISTORY, auditor(server), id=hot))["account"]
    assert account["balance"]["available"] == {"minorUnits": "12"}
    before = await everything(server)
    assert await done(server, SWEEP, reader(server), given) == {**payload, "replayed": True}
    assert await everything(server) == before
    refusal = await refused(
        server, SWEEP, operator(server), {"idempotencyKey": "again", "accountId": hot}
    )
    assert told(refusal) == ("INVALID_INPUT", ["accountId"])


async def test_what_can_t_be_swept_is_refused(server: ApiServer, alice: Wallet) -> None:
    for given, code, path in (
        ({"idempotencyKey": "", "accountId": account_id(alice)}, "INVALID_INPUT", "idempotencyKey"),
        ({"idempotencyKey": "k", "accountId": account_id(alice)}, "INVALID_INPUT", "accountId"),
        ({"idempotencyKey": "k", "accountId": "no id"}, "ACCOUNT_NOT_FOUND", "accountId"),
        (
            {"idempotencyKey": "k", "accountId": encode_account_id(new_id())},
            "ACCOUNT_NOT_FOUND",
            "accountId",
        ),
    ):
        refusal = await refused(server, SWEEP, operator(server), given)
        assert told(refusal) == (code, [path])


# ---------------------------------------------------------------- rights


async def test_who_may_post_and_sweep(server: ApiServer, alice: Wallet, shop: Wallet) -> None:
    given = posting(leg(alice, -1), leg(shop, 1))
    await assert_needs(server, POST, {"input": given}, (Scope.OPERATE,))
    hot = await opened(server, tracking="STRIPED", stripes=16)
    await fill(server, alice, hot)
    sweep = {"idempotencyKey": "sweep", "accountId": hot}
    await assert_needs(server, SWEEP, {"input": sweep}, (Scope.OPERATE,))


async def test_a_partner_s_posting_is_seen_by_its_parties(
    server: ApiServer, alice: Wallet, shop: Wallet, fees: Account
) -> None:
    transaction_id = await book(server, [(alice, -100), (shop, 90), (fees, 10)], "card_sale")
    query = "query ($id: ID!) { transaction(id: $id) { type legs { account { code } } } }"

    seen = [
        await server.ask(query, server.token(name), id=transaction_id) for name in ("alice", "shop")
    ]

    assert seen[0] == seen[1]
    assert [leg["account"]["code"] for leg in seen[0]["transaction"]["legs"]] == [
        None,
        None,
        "system:fees",
    ]
    assert await server.ask(query, server.token("bob"), id=transaction_id) == {"transaction": None}


async def test_what_was_done_is_told_where_a_later_field_fails(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    query = """
    mutation ($a: PostTransactionInput!, $b: TransferInput!) {
      a: postTransaction(input: $a) { replayed }
      b: transfer(input: $b) { replayed }
    }
    """
    given = posting(leg(alice, -1), leg(shop, 1))
    transfer = {
        "idempotencyKey": "transfer",
        "fromAccountId": account_id(alice),
        "toAccountId": account_id(shop),
        "amount": money(1),
    }

    response = await server.post(query, {"a": given, "b": transfer}, token=operator(server))

    (noted,) = response.json()["extensions"]["carriedOut"]
    transaction = (await done(server, POST, operator(server), given))["transaction"]
    assert noted == {"path": ["a"], "transactionId": transaction["id"], "replayed": False}

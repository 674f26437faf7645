"""Holds: money that is set aside, paid or given back; what they answer, and that a refusal changes nothing."""

import asyncio
from typing import Any, Final

import pytest

from app.ledger.model import Account, Scope
from app.schema.ids import (
    decode_hold_id,
    decode_withdrawal_id,
    encode_account_id,
    encode_hold_id,
    encode_transaction_id,
    encode_withdrawal_id,
)
from tests.schema.operators import (
    WHY,
    assert_needs,
    auditor,
    balances,
    done,
    everything,
    money,
    operator,
    refused,
    told,
)
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import Wallet, new_id, new_key
from tests.support.postgres import TestDatabase, connect

HOLD: Final = """
  id status amount { decimal } captured { decimal } expiresAt description metadata createdAt
  account { id }
  transactions {
    id type legs { direction amount { minorUnits } account { id purpose } }
  }
"""


def mutation(name: str) -> str:
    kind = name[0].upper() + name[1:]
    return (
        f"mutation ($input: {kind}Input!) {{ {name}(input: $input) {{"
        f" hold {{ {HOLD} }} transaction {{ id type description }} replayed {WHY} }} }}"
    )


PLACE: Final = mutation("placeHold")
CAPTURE: Final = mutation("captureHold")
VOID: Final = mutation("voidHold")

READ: Final = f"""
query ($id: ID!) {{
  hold(id: $id) {{ {HOLD} }}
  node(id: $id) {{ __typename id }}
  nodes(ids: [$id]) {{ __typename id ... on Hold {{ status }} }}
}}
"""


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def shop(server: ApiServer) -> Wallet:
    return await server.books.wallet("shop", 0, "BRL")


def placing(wallet: Wallet, minor_units: object = 400, **more: Any) -> JsonObject:
    return {
        "idempotencyKey": "place",
        "accountId": account_id(wallet),
        "amount": money(minor_units),
        **more,
    }


async def placed(server: ApiServer, wallet: Wallet, minor_units: int = 400, **more: Any) -> str:
    """Place a hold as the wallet's owner and return its id."""
    given = {**placing(wallet, minor_units), "idempotencyKey": new_key(), **more}
    token = server.token(wallet.owner.subject)
    return (await done(server, PLACE, token, given))["hold"]["id"]


def capturing(hold: str, target: Wallet | Account, **more: Any) -> JsonObject:
    given = {"idempotencyKey": "capture", "holdId": hold, "toAccountId": account_id(target)}
    return {**given, **more}


def voiding(hold: str, **more: Any) -> JsonObject:
    return {"idempotencyKey": "void", "holdId": hold, **more}


def lines(transaction: JsonObject) -> list[tuple[str, str, str, str]]:
    return [
        (
            leg["account"]["id"],
            leg["account"]["purpose"],
            leg["direction"],
            leg["amount"]["minorUnits"],
        )
        for leg in transaction["legs"]
    ]


async def expire(database: TestDatabase, hold: str) -> None:
    """Let a hold's time be over, as if it had been placed long ago."""
    async with connect(database.owner_url) as connection:
        await connection.execute(
            "update hold set expires_at = now() - interval '1 second' where id = $1",
            decode_hold_id(hold),
        )


async def test_money_is_set_aside_in_double_entry(server: ApiServer, alice: Wallet) -> None:
    expires_at = "2090-01-31T12:00:00.000000Z"
    given = placing(alice, expiresAt=expires_at, description="hotel", metadata={"room": 7})

    payload = await done(server, PLACE, server.token(), given)

    hold, transaction = payload["hold"], payload["transaction"]
    assert hold["createdAt"].endswith("Z")
    assert {
        name: hold[name] for name in hold if name not in {"id", "createdAt", "transactions"}
    } == {
        "status": "OPEN",
        "amount": {"decimal": "4.00"},
        "captured": {"decimal": "0.00"},
        "expiresAt": expires_at,
        "description": "hotel",
        "metadata": {"room": 7},
        "account": {"id": account_id(alice)},
    }
    assert payload["replayed"] is False
    assert (transaction["type"], transaction["description"]) == ("hold", "hotel")
    (only,) = hold["transactions"]
    assert only["id"] == transaction["id"]
    # The child that holds the money bears its parent's id.
    assert lines(only) == [
        (account_id(alice), "MAIN", "DEBIT", "400"),
        (account_id(alice), "HELD", "CREDIT", "400"),
    ]
    assert await balances(server, alice) == (600, 400)


async def test_a_capture_pays_a_part_and_releases_the_rest_in_one_transaction(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    hold_id = await placed(server, alice)

    given = capturing(hold_id, shop, amount=money(150), description="two nights")
    payload = await done(server, CAPTURE, server.token("op", *Scope), given)

    hold, transaction = payload["hold"], payload["transaction"]
    assert (hold["id"], hold["status"], hold["captured"]) == (
        hold_id,
        "CAPTURED",
        {"decimal": "1.50"},
    )
    assert (transaction["type"], transaction["description"]) == ("capture", "two nights")
    assert [each["type"] for each in hold["transactions"]] == ["hold", "capture"]
    assert lines(hold["transactions"][1]) == [
        (account_id(alice), "HELD", "DEBIT", "400"),
        (account_id(shop), "MAIN", "CREDIT", "150"),
        (account_id(alice), "MAIN", "CREDIT", "250"),
    ]
    assert await balances(server, alice) == (850, 0)
    assert await balances(server, shop) == (150, 0)


async def test_a_capture_without_an_amount_takes_all(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    hold_id = await placed(server, alice)

    payload = await done(server, CAPTURE, operator(server), capturing(hold_id, shop))

    assert payload["hold"]["captured"] == {"decimal": "4.00"}
    assert await balances(server, alice) == (600, 0)
    assert await balances(server, shop) == (400, 0)


async def test_a_hold_that_is_voided_gives_everything_back(
    server: ApiServer, alice: Wallet
) -> None:
    hold_id = await placed(server, alice)

    payload = await done(server, VOID, server.token("op", *Scope), voiding(hold_id))

    assert (payload["hold"]["status"], payload["hold"]["captured"]) == (
        "VOIDED",
        {"decimal": "0.00"},
    )
    assert payload["transaction"]["type"] == "release"
    assert lines(payload["hold"]["transactions"][1]) == [
        (account_id(alice), "HELD", "DEBIT", "400"),
        (account_id(alice), "MAIN", "CREDIT", "400"),
    ]
    assert await balances(server, alice) == (1_000, 0)


async def test_a_hold_whose_time_is_over_is_released_by_itself(
    server: ApiServer, alice: Wallet, database_url: TestDatabase
) -> None:
    hold_id = await placed(server, alice, expiresAt="2090-01-01T00:00:00Z")
    await expire(database_url, hold_id)

    assert await server.books.upkeep.expire_holds() == 1

    hold = (await server.ask(READ, id=hold_id))["hold"]
    assert hold["status"] == "EXPIRED"
    assert [each["type"] for each in hold["transactions"]] == ["hold", "release"]
    assert await balances(server, alice) == (1_000, 0)


# ---------------------------------------------------------------- replays


async def test_a_repeated_request_answers_the_transaction_once_more_and_the_hold_as_it_is(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    first = await done(server, PLACE, server.token(), placing(alice))
    hold_id = first["hold"]["id"]
    again = await done(server, PLACE, server.token(), placing(alice, description=None))
    assert again == {**first, "replayed": True}

    captured = await done(server, CAPTURE, operator(server), capturing(hold_id, shop))
    before = await everything(server)
    # To leave the amount out and to name all that is held are one request.
    named = capturing(hold_id, shop, amount=money(400))
    assert await done(server, CAPTURE, operator(server), named) == {**captured, "replayed": True}

    late = await done(server, PLACE, server.token(), placing(alice))
    assert late["transaction"] == first["transaction"]
    assert late["replayed"] is True
    assert (late["hold"]["id"], late["hold"]["status"]) == (hold_id, "CAPTURED")
    assert await everything(server) == before


async def test_identical_requests_that_race_place_one_hold(
    server: ApiServer, alice: Wallet
) -> None:
    answers = await asyncio.gather(
        *(done(server, PLACE, server.token(), placing(alice)) for _ in range(10))
    )

    assert len({answer["hold"]["id"] for answer in answers}) == 1
    assert sorted(answer["replayed"] for answer in answers) == [False] + [True] * 9
    assert await balances(server, alice) == (600, 400)


async def test_the_same_key_for_another_request_names_what_differs(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    first = await done(server, PLACE, server.token(), placing(alice))

    changed = placing(alice, 401, expiresAt="2090-01-01T00:00:00Z")
    refusal = await refused(server, PLACE, server.token(), changed)

    assert told(refusal) == ("IDEMPOTENCY_CONFLICT", ["idempotencyKey"])
    assert refusal["transactionId"] == first["transaction"]["id"]
    assert refusal["differingFields"] == ["amount", "expiresAt"]
    hold_id = first["hold"]["id"]
    await done(server, CAPTURE, operator(server), capturing(hold_id, shop, amount=money(1)))
    refusal = await refused(server, CAPTURE, operator(server), capturing(hold_id, shop))
    assert (refusal["code"], refusal["differingFields"]) == ("IDEMPOTENCY_CONFLICT", ["amount"])
    refusal = await refused(
        server, VOID, operator(server), voiding(hold_id, idempotencyKey="capture")
    )
    assert refusal["code"] == "IDEMPOTENCY_CONFLICT"


# ---------------------------------------------------------------- refusals

NOTHING: Final = encode_hold_id(new_id())

BROKEN_PLACINGS: Final[list[tuple[JsonObject, str, list[str]]]] = [
    ({"idempotencyKey": ""}, "INVALID_INPUT", ["idempotencyKey"]),
    ({"amount": money(0)}, "INVALID_AMOUNT", ["amount", "minorUnits"]),
    ({"amount": money(-1)}, "INVALID_AMOUNT", ["amount", "minorUnits"]),
    ({"amount": money(400, "USD")}, "CURRENCY_MISMATCH", ["amount", "currency"]),
    ({"amount": money(1_001)}, "INSUFFICIENT_FUNDS", ["amount", "minorUnits"]),
    ({"expiresAt": "2000-01-01T00:00:00Z"}, "INVALID_INPUT", ["expiresAt"]),
    ({"expiresAt": "0001-01-01T00:00:00Z"}, "INVALID_INPUT", ["expiresAt"]),
    ({"description": "d" * 501}, "INVALID_INPUT", ["description"]),
    ({"metadata": [1]}, "INVALID_INPUT", ["metadata"]),
    ({"accountId": "no id"}, "ACCOUNT_NOT_FOUND", ["accountId"]),
    ({"accountId": encode_account_id(new_id())}, "ACCOUNT_NOT_FOUND", ["accountId"]),
    ({"accountId": encode_transaction_id(new_id())}, "ACCOUNT_NOT_FOUND", ["accountId"]),
]


async def test_a_hold_that_breaks_a_rule_is_not_placed(server: ApiServer, alice: Wallet) -> None:
    for changed, code, path in BROKEN_PLACINGS:
        refusal = await refused(server, PLACE, server.token(), placing(alice, **changed))
        assert told(refusal) == (code, path)


async def test_missing_money_is_refused_with_the_amounts(server: ApiServer, alice: Wallet) -> None:
    await placed(server, alice, 700)

    refusal = await refused(server, PLACE, server.token(), placing(alice, 301))

    assert refusal == {
        "__typename": "InsufficientFunds",
        "code": "INSUFFICIENT_FUNDS",
        "message": "The account has 3.00 BRL available, but 3.01 BRL is needed.",
        "path": ["input", "amount", "minorUnits"],
        "retryable": True,
        "accountId": account_id(alice),
        "available": {"minorUnits": "300"},
        "required": {"minorUnits": "301"},
        "shortfall": {"minorUnits": "1"},
    }


async def test_an_account_that_grows_with_debits_holds_nothing(
    server: ApiServer, alice: Wallet
) -> None:
    bank = await server.books.clearing("BRL")

    given = {**placing(alice), "accountId": account_id(bank)}
    refusal = await refused(server, PLACE, operator(server), given)

    assert told(refusal) == ("ACCOUNT_NOT_FOUND", ["accountId"])


async def test_money_of_others_can_t_be_set_aside(server: ApiServer, alice: Wallet) -> None:
    bob = server.token("bob")
    for wallet in (account_id(alice), encode_account_id(new_id())):
        refusal = await refused(server, PLACE, bob, {**placing(alice), "accountId": wallet})
        assert told(refusal) == ("ACCOUNT_NOT_FOUND", ["accountId"])
        assert refusal["message"] == "There is no such account."
    await done(server, PLACE, operator(server), placing(alice))


async def test_a_capture_that_breaks_a_rule_is_refused(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    hold_id = await placed(server, alice)
    dollars = await server.books.wallet("shop", 0, "USD")
    broken: list[tuple[JsonObject, str, list[str]]] = [
        ({"idempotencyKey": "é"}, "INVALID_INPUT", ["idempotencyKey"]),
        ({"amount": money(0)}, "INVALID_AMOUNT", ["amount", "minorUnits"]),
        ({"amount": money(1, "USD")}, "CURRENCY_MISMATCH", ["amount", "currency"]),
        ({"amount": money(401)}, "CAPTURE_EXCEEDS_HOLD", ["amount", "minorUnits"]),
        ({"description": "d" * 501}, "INVALID_INPUT", ["description"]),
        ({"holdId": "no id"}, "HOLD_NOT_FOUND", ["holdId"]),
        ({"holdId": NOTHING}, "HOLD_NOT_FOUND", ["holdId"]),
        ({"holdId": account_id(alice)}, "HOLD_NOT_FOUND", ["holdId"]),
        ({"toAccountId": "no id"}, "ACCOUNT_NOT_FOUND", ["toAccountId"]),
        ({"toAccountId": encode_account_id(new_id())}, "ACCOUNT_NOT_FOUND", ["toAccountId"]),
        ({"toAccountId": account_id(alice)}, "SAME_ACCOUNT", ["toAccountId"]),
        ({"toAccountId": account_id(dollars)}, "CURRENCY_MISMATCH", ["amount", "currency"]),
    ]
    for changed, code, path in broken:
        refusal = await refused(
            server, CAPTURE, operator(server), capturing(hold_id, shop, **changed)
        )
        assert told(refusal) == (code, path)
        if code == "CAPTURE_EXCEEDS_HOLD":
            assert refusal["message"] == "The hold has only 4.00 BRL."
    # None of them has used the key up.
    await done(server, CAPTURE, operator(server), capturing(hold_id, shop))


async def test_a_void_that_breaks_a_rule_is_refused(server: ApiServer, alice: Wallet) -> None:
    hold_id = await placed(server, alice)
    for given, code, path in (
        (voiding(hold_id, idempotencyKey=""), "INVALID_INPUT", ["idempotencyKey"]),
        (voiding("no id"), "HOLD_NOT_FOUND", ["holdId"]),
        (voiding(NOTHING), "HOLD_NOT_FOUND", ["holdId"]),
    ):
        assert told(await refused(server, VOID, operator(server), given)) == (code, path)


async def test_a_hold_ends_once(
    server: ApiServer, alice: Wallet, shop: Wallet, database_url: TestDatabase
) -> None:
    ended = {
        "The hold has been captured.": await placed(server, alice, 100),
        "The hold has been voided.": await placed(server, alice, 100),
        "The hold has expired.": await placed(server, alice, 100, expiresAt="2090-01-01T00:00:00Z"),
    }
    captured, voided, expired = ended.values()
    await done(server, CAPTURE, operator(server), capturing(captured, shop, idempotencyKey="1"))
    await done(server, VOID, operator(server), voiding(voided, idempotencyKey="2"))
    await expire(database_url, expired)
    assert await server.books.upkeep.expire_holds() == 1
    for message, hold_id in ended.items():
        refusal = await refused(server, VOID, operator(server), voiding(hold_id))
        assert told(refusal) == ("HOLD_NOT_OPEN", ["holdId"])
        assert (refusal["message"], refusal["retryable"]) == (message, False)
    # To who comes late for the money it makes no difference whether it has been released.
    for hold_id, code in (
        (captured, "HOLD_NOT_OPEN"),
        (voided, "HOLD_NOT_OPEN"),
        (expired, "HOLD_EXPIRED"),
    ):
        refusal = await refused(server, CAPTURE, operator(server), capturing(hold_id, shop))
        assert told(refusal) == (code, ["holdId"])


async def test_a_late_capture_is_refused_before_anybody_has_released_the_hold(
    server: ApiServer, alice: Wallet, shop: Wallet, database_url: TestDatabase
) -> None:
    hold_id = await placed(server, alice, expiresAt="2090-01-01T00:00:00Z")
    await expire(database_url, hold_id)

    refusal = await refused(server, CAPTURE, operator(server), capturing(hold_id, shop))

    assert told(refusal) == ("HOLD_EXPIRED", ["holdId"])
    assert refusal["message"] == "The hold's time is over."
    await done(server, VOID, operator(server), voiding(hold_id))


async def test_a_frozen_account_s_hold_is_voided_and_not_captured(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    hold_id = await placed(server, alice)
    freeze = (
        "mutation ($input: SetAccountStatusInput!) "
        "{ setAccountStatus(input: $input) { account { status } userErrors { code } } }"
    )
    given = {"accountId": account_id(alice), "status": "FROZEN"}
    await done(server, freeze, operator(server), given)

    refusal = await refused(server, CAPTURE, operator(server), capturing(hold_id, shop))
    assert told(refusal) == ("ACCOUNT_FROZEN", ["holdId"])
    assert refusal["retryable"] is True
    refusal = await refused(server, PLACE, server.token(), placing(alice))
    assert told(refusal) == ("ACCOUNT_FROZEN", ["accountId"])
    await done(server, VOID, operator(server), voiding(hold_id))
    assert await balances(server, alice) == (1_000, 0)


async def test_a_withdrawal_is_no_hold(server: ApiServer, alice: Wallet, shop: Wallet) -> None:
    withdraw = (
        "mutation ($input: WithdrawInput!) "
        "{ withdraw(input: $input) { withdrawal { id } userErrors { code } } }"
    )
    withdrawal = (await done(server, withdraw, server.token(), placing(alice)))["withdrawal"]["id"]
    # Its id as that of a hold, which no client is ever told.
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename } }"
    key = decode_withdrawal_id(withdrawal)
    assert key is not None
    disguised = encode_hold_id(key)
    found = await server.ask(query, ids=[withdrawal, disguised])
    assert found == {"nodes": [{"__typename": "Withdrawal"}, None]}
    for hold_id in (withdrawal, disguised):
        for query, given in ((CAPTURE, capturing(hold_id, shop)), (VOID, voiding(hold_id))):
            refusal = await refused(server, query, operator(server), given)
            assert told(refusal) == ("HOLD_NOT_FOUND", ["holdId"])


# ---------------------------------------------------------------- rights


async def test_who_may_place_capture_and_void(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    bare = "{{ {0}(input: $input) {{ hold {{ id status account {{ id }} transactions {{ id }} }} userErrors {{ code }} }} }}"
    place = "mutation ($input: PlaceHoldInput!) " + bare.format("placeHold")
    await assert_needs(server, place, {"input": placing(alice)}, (Scope.WALLET, Scope.OPERATE))
    first, second = await placed(server, alice, 100), await placed(server, alice, 100)
    capture = "mutation ($input: CaptureHoldInput!) " + bare.format("captureHold")
    await assert_needs(server, capture, {"input": capturing(first, shop)}, (Scope.OPERATE,))
    void = "mutation ($input: VoidHoldInput!) " + bare.format("voidHold")
    await assert_needs(server, void, {"input": voiding(second)}, (Scope.OPERATE,))


async def test_who_operates_sees_the_hold_and_nothing_of_the_account_s_money(
    server: ApiServer, alice: Wallet
) -> None:
    query = PLACE.replace("account { id }", "account { id code owner balance { sequence } }", 1)
    response = await server.post(query, {"input": placing(alice)}, token=operator(server))

    answer = response.json()
    (error,) = answer["errors"]
    assert error["path"] == ["placeHold", "hold", "account", "balance"]
    assert error["extensions"] == {"code": "FORBIDDEN", "scopes": ["AUDIT"]}
    assert answer["data"]["placeHold"]["hold"] is None
    # The hold was placed all the same, and is told where the fields ask for no more than may be seen.
    payload = await done(server, PLACE, operator(server), placing(alice))
    assert payload["replayed"] is True
    (noted,) = answer["extensions"]["carriedOut"]
    assert noted["holdId"] == payload["hold"]["id"]
    assert [each["type"] for each in payload["hold"]["transactions"]] == ["hold"]


async def test_what_is_of_others_looks_like_what_isn_t_there(
    server: ApiServer, alice: Wallet
) -> None:
    hold_id = await placed(server, alice)
    own = await server.ask(READ, id=hold_id)
    assert own["node"] == {"__typename": "Hold", "id": hold_id}
    assert own["nodes"] == [{"__typename": "Hold", "id": hold_id, "status": "OPEN"}]
    assert await server.ask(READ, auditor(server), id=hold_id) == own
    nobody = await server.ask(READ, id=NOTHING)
    assert nobody == {"hold": None, "node": None, "nodes": [None]}
    for token in (server.token("bob"), operator(server), server.token("alice", Scope.OPERATE)):
        assert await server.ask(READ, token, id=hold_id) == nobody
    for other in (account_id(alice), encode_withdrawal_id(new_id()), "no id"):
        assert (await server.ask("query ($id: ID!) { hold(id: $id) { id } }", id=other)) == {
            "hold": None
        }


async def test_what_was_done_is_told_where_a_later_field_fails(
    server: ApiServer, alice: Wallet
) -> None:
    query = """
    mutation ($a: PlaceHoldInput!, $b: VoidHoldInput!) {
      a: placeHold(input: $a) { replayed }
      b: voidHold(input: $b) { replayed }
    }
    """

    response = await server.post(
        query, {"a": placing(alice), "b": voiding(NOTHING)}, token=server.token()
    )

    answer = response.json()
    assert answer["data"] is None
    (noted,) = answer["extensions"]["carriedOut"]
    placed_now = await done(server, PLACE, server.token(), placing(alice))
    assert noted == {
        "path": ["a"],
        "holdId": placed_now["hold"]["id"],
        "transactionId": placed_now["transaction"]["id"],
        "replayed": False,
    }

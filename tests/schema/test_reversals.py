"""Reversals and refunds: what takes a transaction back, linked both ways, once or up to what it moved."""

import asyncio
from typing import Any, Final

import pytest

from app.ledger.model import AccountKind, Scope
from app.schema.ids import encode_transaction_id
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
from tests.support.ledger import Wallet, new_id, posted

POSTING: Final = f"""
  transaction {{
    id type description reverses {{ id }} reversedBy {{ id }}
    legs {{ direction amount {{ minorUnits }} account {{ id purpose }} }}
  }}
  entries {{ account {{ id }} amount {{ minorUnits }} balanceAfter {{ minorUnits }} }}
  replayed {WHY}
"""

REVERSE: Final = f"""
mutation ($input: ReverseTransactionInput!) {{ reverseTransaction(input: $input) {{ {POSTING} }} }}
"""

REFUND: Final = f"""
mutation ($input: RefundTransactionInput!) {{ refundTransaction(input: $input) {{ {POSTING} }} }}
"""

READ: Final = """
query ($id: ID!) {
  transaction(id: $id) { type reverses { id } reversedBy { id type description } }
}
"""

NOTHING: Final = encode_transaction_id(new_id())


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def shop(server: ApiServer) -> Wallet:
    return await server.books.wallet("shop", 0, "BRL")


async def paid(server: ApiServer, source: Wallet, target: Wallet, minor_units: int) -> str:
    """Transfer money and return the transaction's id."""
    answer = posted(await server.books.transfer(source, target, minor_units))
    return encode_transaction_id(answer.transaction.id)


def reversing(transaction: str, **more: Any) -> JsonObject:
    given = {"idempotencyKey": "reverse", "transactionId": transaction, "reason": "by mistake"}
    return {**given, **more}


def refunding(transaction: str, minor_units: object, **more: Any) -> JsonObject:
    return {
        "idempotencyKey": f"refund {minor_units}",
        "transactionId": transaction,
        "amount": money(minor_units),
        **more,
    }


def lines(payload: JsonObject) -> list[tuple[str, str, str]]:
    return [
        (leg["account"]["id"], leg["direction"], leg["amount"]["minorUnits"])
        for leg in payload["transaction"]["legs"]
    ]


async def test_a_reversal_swaps_the_sides_and_is_linked_both_ways(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 400)
    token = server.token("op", Scope.OPERATE, Scope.AUDIT)

    payload = await done(server, REVERSE, token, reversing(original))

    transaction = payload["transaction"]
    assert (transaction["type"], transaction["description"]) == ("reversal", "by mistake")
    assert transaction["reverses"] == {"id": original}
    assert lines(payload) == [
        (account_id(alice), "CREDIT", "400"),
        (account_id(shop), "DEBIT", "400"),
    ]
    assert payload["entries"] == [
        {
            "account": {"id": account_id(alice)},
            "amount": {"minorUnits": "400"},
            "balanceAfter": {"minorUnits": "1000"},
        },
        {
            "account": {"id": account_id(shop)},
            "amount": {"minorUnits": "-400"},
            "balanceAfter": {"minorUnits": "0"},
        },
    ]
    found = await server.ask(READ, id=original)
    assert found["transaction"] == {
        "type": "transfer",
        "reverses": None,
        "reversedBy": [{"id": transaction["id"], "type": "reversal", "description": "by mistake"}],
    }


async def test_a_reversal_takes_back_any_number_of_legs(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    fees = await server.books.open(currency="BRL", kind=AccountKind.REVENUE)
    original = await book(server, [(alice, -500), (shop, 480), (fees, 20)])

    payload = await done(server, REVERSE, operator(server), reversing(original))

    assert lines(payload) == [
        (account_id(alice), "CREDIT", "500"),
        (account_id(shop), "DEBIT", "480"),
        (account_id(fees), "DEBIT", "20"),
    ]
    assert payload["entries"] == []  # Who may operate may not read.
    assert await balances(server, alice) == (1_000, 0)
    assert await balances(server, fees) == (0, 0)


async def test_refunds_give_back_piece_by_piece_up_to_the_original(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 400)

    first = await done(
        server, REFUND, operator(server), refunding(original, 150, reason="one was broken")
    )
    second = await done(server, REFUND, operator(server), refunding(original, 200))

    assert (first["transaction"]["type"], first["transaction"]["description"]) == (
        "refund",
        "one was broken",
    )
    assert (
        first["transaction"]["reverses"] is None
    )  # Made by alice, and so not the operator's to see.
    assert lines(first) == [
        (account_id(alice), "CREDIT", "150"),
        (account_id(shop), "DEBIT", "150"),
    ]
    refusal = await refused(server, REFUND, operator(server), refunding(original, 51))
    assert told(refusal) == ("REFUND_EXCEEDS_ORIGINAL", ["amount", "minorUnits"])
    assert refusal["message"] == "No more than 0.50 BRL of the transaction can still be refunded."
    last = await done(server, REFUND, operator(server), refunding(original, 50))
    seen = (await server.ask(READ, id=original))["transaction"]["reversedBy"]
    assert [each["id"] for each in seen] == [
        payload["transaction"]["id"] for payload in (first, second, last)
    ]
    own = (await server.ask(READ, auditor(server), id=last["transaction"]["id"]))["transaction"]
    assert own["reverses"] == {"id": original}
    assert await balances(server, alice) == (1_000, 0)


async def test_refunds_that_race_never_exceed_the_original(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 400)
    await server.books.deposit(shop.account, 1_000)

    answers = await asyncio.gather(
        *(
            server.ask(
                REFUND,
                operator(server),
                input=refunding(original, 150, idempotencyKey=str(number)),
            )
            for number in range(8)
        )
    )

    payloads = [answer["refundTransaction"] for answer in answers]
    assert sum(payload["transaction"] is not None for payload in payloads) == 2
    codes = {error["code"] for payload in payloads for error in payload["userErrors"]}
    assert codes == {"REFUND_EXCEEDS_ORIGINAL"}
    assert await balances(server, shop) == (1_100, 0)


# ---------------------------------------------------------------- replays


async def test_a_repeated_request_answers_the_same_once_more(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    first, second = await paid(server, alice, shop, 400), await paid(server, alice, shop, 100)
    token = server.token("op", *Scope)
    for query, given in (
        (REVERSE, reversing(first)),
        (REFUND, refunding(second, 100, reason=None)),
    ):
        payload = await done(server, query, token, given)
        before = await everything(server)
        assert await done(server, query, token, given) == {**payload, "replayed": True}
        assert await everything(server) == before


async def test_the_same_key_for_another_request_names_what_differs(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original, other = await paid(server, alice, shop, 400), await paid(server, alice, shop, 1)
    payload = await done(server, REVERSE, operator(server), reversing(original))
    changed = reversing(other, reason="another")
    refusal = await refused(server, REVERSE, operator(server), changed)
    assert told(refusal) == ("IDEMPOTENCY_CONFLICT", ["idempotencyKey"])
    assert refusal["transactionId"] == payload["transaction"]["id"]
    assert refusal["differingFields"] == ["reason", "transactionId"]
    refusal = await refused(
        server, REFUND, operator(server), refunding(other, 1, idempotencyKey="reverse")
    )
    assert refusal["code"] == "IDEMPOTENCY_CONFLICT"


# ---------------------------------------------------------------- refusals


async def test_what_breaks_a_rule_is_refused(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 400)
    broken: list[tuple[str, JsonObject, str, list[str]]] = [
        (REVERSE, reversing(original, idempotencyKey=""), "INVALID_INPUT", ["idempotencyKey"]),
        (REVERSE, reversing(original, reason="r" * 501), "INVALID_INPUT", ["reason"]),
        (REVERSE, reversing("no id"), "TRANSACTION_NOT_FOUND", ["transactionId"]),
        (REVERSE, reversing(NOTHING), "TRANSACTION_NOT_FOUND", ["transactionId"]),
        (REVERSE, reversing(account_id(alice)), "TRANSACTION_NOT_FOUND", ["transactionId"]),
        (REFUND, refunding(original, 1, idempotencyKey=""), "INVALID_INPUT", ["idempotencyKey"]),
        (REFUND, refunding(original, 0), "INVALID_AMOUNT", ["amount", "minorUnits"]),
        (REFUND, refunding(original, -1), "INVALID_AMOUNT", ["amount", "minorUnits"]),
        (REFUND, refunding(original, 1, reason="r" * 501), "INVALID_INPUT", ["reason"]),
        (REFUND, refunding("no id", 1), "TRANSACTION_NOT_FOUND", ["transactionId"]),
        (REFUND, refunding(NOTHING, 1), "TRANSACTION_NOT_FOUND", ["transactionId"]),
        (
            REFUND,
            refunding(original, 1, amount=money(1, "USD")),
            "CURRENCY_MISMATCH",
            ["amount", "currency"],
        ),
        (
            REFUND,
            refunding(original, 401),
            "REFUND_EXCEEDS_ORIGINAL",
            ["amount", "minorUnits"],
        ),
    ]
    for query, given, code, path in broken:
        assert told(await refused(server, query, operator(server), given)) == (code, path)


async def test_a_transaction_is_reversed_once_and_never_beside_refunds(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    reversed_one, refunded = (
        await paid(server, alice, shop, 400),
        await paid(server, alice, shop, 100),
    )
    await done(server, REVERSE, operator(server), reversing(reversed_one, idempotencyKey="1"))
    await done(server, REFUND, operator(server), refunding(refunded, 1, idempotencyKey="2"))

    for query, given in (
        (REVERSE, reversing(reversed_one)),
        (REFUND, refunding(reversed_one, 1)),
        (REVERSE, reversing(refunded)),
    ):
        refusal = await refused(server, query, operator(server), given)
        assert told(refusal) == ("ALREADY_REVERSED", ["transactionId"])
        assert refusal["message"] == "The transaction has already been reversed or refunded."


async def test_money_that_is_gone_can_t_be_taken_back(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 400)
    await paid(server, shop, alice, 300)

    refusal = await refused(server, REVERSE, operator(server), reversing(original))
    assert told(refusal) == ("INSUFFICIENT_FUNDS", ["transactionId"])
    assert refusal["accountId"] == account_id(shop)
    assert refusal["shortfall"] == {"minorUnits": "300"}
    refusal = await refused(server, REFUND, operator(server), refunding(original, 101))
    assert told(refusal) == ("INSUFFICIENT_FUNDS", ["amount", "minorUnits"])
    await done(server, REFUND, operator(server), refunding(original, 100))


async def test_only_what_moved_between_two_accounts_is_refunded(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    fees = await server.books.open(currency="BRL", kind=AccountKind.REVENUE)
    original = await book(server, [(alice, -500), (shop, 480), (fees, 20)])

    refusal = await refused(server, REFUND, operator(server), refunding(original, 1))

    assert told(refusal) == ("NOT_REVERSIBLE", ["transactionId"])
    assert refusal["message"].startswith("This can't be taken back: ")


async def test_what_has_another_way_back_is_not_reversed(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 100)
    reversal = await done(
        server, REVERSE, operator(server), reversing(original, idempotencyKey="1")
    )
    place = (
        "mutation ($input: PlaceHoldInput!) "
        "{ placeHold(input: $input) { transaction { id } userErrors { code } } }"
    )
    given = {"idempotencyKey": "hold", "accountId": account_id(alice), "amount": money(10)}
    hold = await done(server, place, server.token(), given)
    for transaction in (reversal["transaction"]["id"], hold["transaction"]["id"]):
        for query, given in (
            (REVERSE, reversing(transaction)),
            (REFUND, refunding(transaction, 1)),
        ):
            refusal = await refused(server, query, operator(server), given)
            assert told(refusal) == ("NOT_REVERSIBLE", ["transactionId"])
            assert refusal["retryable"] is False


# ---------------------------------------------------------------- rights


async def test_who_may_reverse_and_refund(server: ApiServer, alice: Wallet, shop: Wallet) -> None:
    first, second = await paid(server, alice, shop, 100), await paid(server, alice, shop, 100)
    await assert_needs(server, REVERSE, {"input": reversing(first)}, (Scope.OPERATE,))
    await assert_needs(server, REFUND, {"input": refunding(second, 1)}, (Scope.OPERATE,))


async def test_both_parties_see_that_their_transaction_was_taken_back(
    server: ApiServer, alice: Wallet, shop: Wallet
) -> None:
    original = await paid(server, alice, shop, 100)
    await done(server, REVERSE, operator(server), reversing(original))

    seen = [await server.ask(READ, server.token(name), id=original) for name in ("alice", "shop")]

    assert seen[0] == seen[1]
    assert len(seen[0]["transaction"]["reversedBy"]) == 1
    assert await server.ask(READ, server.token("bob"), id=original) == {"transaction": None}

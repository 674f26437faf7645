"""Withdrawals: money on its way to a bank, which confirms or refuses; what they answer, and that a refusal changes nothing."""

import asyncio
from typing import Any, Final

import pytest

from app.ledger.model import Scope
from app.schema.ids import (
    decode_hold_id,
    encode_account_id,
    encode_hold_id,
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

WITHDRAWAL: Final = """
  id status amount { decimal } externalReference failureReason createdAt settledAt
  account { id }
  transactions {
    type externalReference legs { direction amount { minorUnits } account { id code purpose } }
  }
"""

WITHDRAW: Final = f"""
mutation ($input: WithdrawInput!) {{
  withdraw(input: $input) {{ withdrawal {{ {WITHDRAWAL} }} replayed {WHY} }}
}}
"""

SETTLE: Final = f"""
mutation ($input: SettleWithdrawalInput!) {{
  settleWithdrawal(input: $input) {{ withdrawal {{ {WITHDRAWAL} }} replayed {WHY} }}
}}
"""

READ: Final = f"""
query ($id: ID!) {{
  withdrawal(id: $id) {{ {WITHDRAWAL} }}
  node(id: $id) {{ __typename id }}
  nodes(ids: [$id]) {{ __typename id ... on Withdrawal {{ status }} }}
}}
"""

NOTHING: Final = encode_withdrawal_id(new_id())
CLEARING: Final = "system:bank_clearing:BRL"


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


def withdrawing(wallet: Wallet, minor_units: object = 400, **more: Any) -> JsonObject:
    return {
        "idempotencyKey": "withdraw",
        "accountId": account_id(wallet),
        "amount": money(minor_units),
        **more,
    }


def settling(withdrawal: str, outcome: str = "COMPLETED", **more: Any) -> JsonObject:
    given = {"idempotencyKey": "settle", "withdrawalId": withdrawal, "outcome": outcome}
    return {**given, **more}


async def pending(server: ApiServer, wallet: Wallet, minor_units: int = 400, **more: Any) -> str:
    """Ask for a withdrawal as the wallet's owner and return its id."""
    given = {**withdrawing(wallet, minor_units), "idempotencyKey": new_key(), **more}
    token = server.token(wallet.owner.subject)
    return (await done(server, WITHDRAW, token, given))["withdrawal"]["id"]


def lines(transaction: JsonObject) -> list[tuple[str, str, str, str]]:
    return [
        (
            leg["account"]["code"] or leg["account"]["id"],
            leg["account"]["purpose"],
            leg["direction"],
            leg["amount"]["minorUnits"],
        )
        for leg in transaction["legs"]
    ]


async def test_the_money_is_held_at_once(server: ApiServer, alice: Wallet) -> None:
    given = withdrawing(alice, externalReference="pix-1", description="rent", metadata={"a": 1})

    payload = await done(server, WITHDRAW, server.token(), given)

    withdrawal = payload["withdrawal"]
    (held,) = withdrawal.pop("transactions")
    assert withdrawal.pop("createdAt").endswith("Z")
    assert withdrawal == {
        "id": withdrawal["id"],
        "status": "PENDING",
        "amount": {"decimal": "4.00"},
        "externalReference": "pix-1",
        "failureReason": None,
        "settledAt": None,
        "account": {"id": account_id(alice)},
    }
    assert payload["replayed"] is False
    assert (held["type"], held["externalReference"]) == ("hold", "pix-1")
    assert lines(held) == [
        (account_id(alice), "MAIN", "DEBIT", "400"),
        (account_id(alice), "HELD", "CREDIT", "400"),
    ]
    assert await balances(server, alice) == (600, 400)


async def test_what_the_bank_confirms_leaves_by_the_clearing_account(
    server: ApiServer, alice: Wallet
) -> None:
    withdrawal_id = await pending(server, alice, externalReference="pix-1")

    given = settling(withdrawal_id, externalReference="bank-7")
    payload = await done(server, SETTLE, server.token("op", *Scope), given)

    withdrawal = payload["withdrawal"]
    assert (withdrawal["id"], withdrawal["status"]) == (withdrawal_id, "COMPLETED")
    assert (withdrawal["externalReference"], withdrawal["failureReason"]) == ("bank-7", None)
    assert withdrawal["settledAt"] >= withdrawal["createdAt"]
    _, left = withdrawal["transactions"]
    assert left["type"] == "withdrawal"
    assert lines(left) == [
        (account_id(alice), "HELD", "DEBIT", "400"),
        (CLEARING, "MAIN", "CREDIT", "400"),
    ]
    assert await balances(server, alice) == (600, 0)
    bank = await server.ask(
        f'{{ accountByCode(code: "{CLEARING}") {{ balance {{ available {{ minorUnits }} }} }} }}',
        auditor(server),
    )
    assert bank["accountByCode"]["balance"] == {"available": {"minorUnits": "600"}}


async def test_what_the_bank_refuses_goes_back(server: ApiServer, alice: Wallet) -> None:
    withdrawal_id = await pending(server, alice, externalReference="pix-1")

    given = settling(withdrawal_id, "FAILED", failureReason="no such key")
    payload = await done(server, SETTLE, server.token("op", *Scope), given)

    withdrawal = payload["withdrawal"]
    assert (withdrawal["status"], withdrawal["failureReason"]) == ("FAILED", "no such key")
    assert withdrawal["externalReference"] == "pix-1"
    assert withdrawal["settledAt"] is not None
    _, back = withdrawal["transactions"]
    assert back["type"] == "release"
    assert lines(back) == [
        (account_id(alice), "HELD", "DEBIT", "400"),
        (account_id(alice), "MAIN", "CREDIT", "400"),
    ]
    assert await balances(server, alice) == (1_000, 0)
    assert (await server.ask(READ, id=withdrawal_id))["withdrawal"] == withdrawal


# ---------------------------------------------------------------- replays


async def test_a_repeated_request_answers_the_withdrawal_as_it_is_now(
    server: ApiServer, alice: Wallet
) -> None:
    first = await done(server, WITHDRAW, server.token(), withdrawing(alice))
    again = await done(server, WITHDRAW, server.token(), withdrawing(alice, metadata=None))
    assert again == {**first, "replayed": True}

    given = settling(first["withdrawal"]["id"])
    settled = await done(server, SETTLE, server.token("op", *Scope), given)
    before = await everything(server)
    repeated = await done(server, SETTLE, server.token("op", *Scope), given)
    assert repeated == {**settled, "replayed": True}
    late = await done(server, WITHDRAW, server.token(), withdrawing(alice))
    assert (late["replayed"], late["withdrawal"]["status"]) == (True, "COMPLETED")
    assert await everything(server) == before


async def test_of_two_settlements_that_race_one_is_booked(server: ApiServer, alice: Wallet) -> None:
    withdrawal_id = await pending(server, alice)
    inputs = [
        settling(withdrawal_id, outcome, idempotencyKey=f"{outcome} {number}")
        for outcome in ("COMPLETED", "FAILED")
        for number in range(5)
    ]

    answers = await asyncio.gather(
        *(server.ask(SETTLE, operator(server), input=given) for given in inputs)
    )

    payloads = [answer["settleWithdrawal"] for answer in answers]
    assert [payload["withdrawal"] is not None for payload in payloads].count(True) == 1
    codes = {error["code"] for payload in payloads for error in payload["userErrors"]}
    assert codes == {"WITHDRAWAL_NOT_PENDING"}
    available, held = await balances(server, alice)
    assert held == 0
    assert available in {600, 1_000}


async def test_the_same_key_for_another_request_names_what_differs(
    server: ApiServer, alice: Wallet
) -> None:
    first = await done(server, WITHDRAW, server.token(), withdrawing(alice))
    changed = withdrawing(alice, 401, externalReference="pix-2")
    refusal = await refused(server, WITHDRAW, server.token(), changed)
    assert told(refusal) == ("IDEMPOTENCY_CONFLICT", ["idempotencyKey"])
    assert refusal["differingFields"] == ["amount", "externalReference"]

    given = settling(first["withdrawal"]["id"])
    await done(server, SETTLE, operator(server), given)
    # The other way round under the same key is another request, and so is refused and never replayed.
    refusal = await refused(server, SETTLE, operator(server), {**given, "outcome": "FAILED"})
    assert told(refusal) == ("IDEMPOTENCY_CONFLICT", ["idempotencyKey"])
    assert refusal["differingFields"] == ["outcome"]


# ---------------------------------------------------------------- refusals

BROKEN_WITHDRAWALS: Final[list[tuple[JsonObject, str, list[str]]]] = [
    ({"idempotencyKey": "k" * 129}, "INVALID_INPUT", ["idempotencyKey"]),
    ({"amount": money(0)}, "INVALID_AMOUNT", ["amount", "minorUnits"]),
    ({"amount": money(-400)}, "INVALID_AMOUNT", ["amount", "minorUnits"]),
    ({"amount": money(400, "KWD")}, "CURRENCY_MISMATCH", ["amount", "currency"]),
    ({"amount": money(1_001)}, "INSUFFICIENT_FUNDS", ["amount", "minorUnits"]),
    ({"externalReference": "r" * 129}, "INVALID_INPUT", ["externalReference"]),
    ({"description": "nul\0"}, "INVALID_INPUT", ["description"]),
    ({"metadata": "text"}, "INVALID_INPUT", ["metadata"]),
    ({"accountId": "no id"}, "ACCOUNT_NOT_FOUND", ["accountId"]),
    ({"accountId": encode_account_id(new_id())}, "ACCOUNT_NOT_FOUND", ["accountId"]),
]


async def test_a_withdrawal_that_breaks_a_rule_is_refused(server: ApiServer, alice: Wallet) -> None:
    for changed, code, path in BROKEN_WITHDRAWALS:
        refusal = await refused(server, WITHDRAW, server.token(), withdrawing(alice, **changed))
        assert told(refusal) == (code, path)


async def test_money_of_others_can_t_be_withdrawn_not_even_by_who_operates(
    server: ApiServer, alice: Wallet
) -> None:
    for token in (server.token("bob"), server.token("op", *Scope)):
        refusal = await refused(server, WITHDRAW, token, withdrawing(alice))
        assert told(refusal) == ("ACCOUNT_NOT_FOUND", ["accountId"])


async def test_a_settlement_that_breaks_a_rule_is_refused(server: ApiServer, alice: Wallet) -> None:
    withdrawal_id = await pending(server, alice)
    broken: list[tuple[JsonObject, str, list[str]]] = [
        ({"idempotencyKey": ""}, "INVALID_INPUT", ["idempotencyKey"]),
        ({"externalReference": "r" * 129}, "INVALID_INPUT", ["externalReference"]),
        ({"failureReason": "f"}, "INVALID_INPUT", ["failureReason"]),
        (
            {"outcome": "FAILED", "failureReason": "f" * 501},
            "INVALID_INPUT",
            ["failureReason"],
        ),
        ({"withdrawalId": "no id"}, "WITHDRAWAL_NOT_FOUND", ["withdrawalId"]),
        ({"withdrawalId": NOTHING}, "WITHDRAWAL_NOT_FOUND", ["withdrawalId"]),
        ({"withdrawalId": account_id(alice)}, "WITHDRAWAL_NOT_FOUND", ["withdrawalId"]),
    ]
    for changed, code, path in broken:
        given = settling(withdrawal_id, **changed)
        refusal = await refused(server, SETTLE, operator(server), given)
        assert told(refusal) == (code, path)
        if code == "WITHDRAWAL_NOT_FOUND":
            assert refusal["message"] == "There is no such withdrawal."
    await done(server, SETTLE, operator(server), settling(withdrawal_id))


async def test_a_withdrawal_is_settled_once(server: ApiServer, alice: Wallet) -> None:
    completed, failed = await pending(server, alice, 100), await pending(server, alice, 100)
    await done(server, SETTLE, operator(server), settling(completed, idempotencyKey="1"))
    await done(server, SETTLE, operator(server), settling(failed, "FAILED", idempotencyKey="2"))
    for withdrawal_id, message in (
        (completed, "The withdrawal has been completed."),
        (failed, "The withdrawal has failed."),
    ):
        for outcome in ("COMPLETED", "FAILED"):
            given = settling(withdrawal_id, outcome)
            refusal = await refused(server, SETTLE, operator(server), given)
            assert told(refusal) == ("WITHDRAWAL_NOT_PENDING", ["withdrawalId"])
            assert (refusal["message"], refusal["retryable"]) == (message, False)


async def test_a_frozen_account_s_withdrawal_fails_and_is_not_completed(
    server: ApiServer, alice: Wallet
) -> None:
    withdrawal_id = await pending(server, alice)
    freeze = (
        "mutation ($input: SetAccountStatusInput!) "
        "{ setAccountStatus(input: $input) { account { status } userErrors { code } } }"
    )
    given = {"accountId": account_id(alice), "status": "FROZEN"}
    await done(server, freeze, operator(server), given)

    refusal = await refused(server, SETTLE, operator(server), settling(withdrawal_id))
    assert told(refusal) == ("ACCOUNT_FROZEN", ["withdrawalId"])
    refusal = await refused(server, WITHDRAW, server.token(), withdrawing(alice))
    assert told(refusal) == ("ACCOUNT_FROZEN", ["accountId"])
    await done(server, SETTLE, operator(server), settling(withdrawal_id, "FAILED"))
    assert await balances(server, alice) == (1_000, 0)


async def test_a_hold_is_no_withdrawal(server: ApiServer, alice: Wallet) -> None:
    place = (
        "mutation ($input: PlaceHoldInput!) "
        "{ placeHold(input: $input) { hold { id } userErrors { code } } }"
    )
    hold_id = (await done(server, place, server.token(), withdrawing(alice)))["hold"]["id"]
    key = decode_hold_id(hold_id)
    assert key is not None
    for disguised in (hold_id, encode_withdrawal_id(key)):
        refusal = await refused(server, SETTLE, operator(server), settling(disguised))
        assert told(refusal) == ("WITHDRAWAL_NOT_FOUND", ["withdrawalId"])
        query = "query ($id: ID!) { withdrawal(id: $id) { id } }"
        assert await server.ask(query, id=disguised) == {"withdrawal": None}


# ---------------------------------------------------------------- rights


async def test_who_may_withdraw_and_settle(server: ApiServer, alice: Wallet) -> None:
    bare = "{{ {0}(input: $input) {{ withdrawal {{ id status account {{ id }} transactions {{ type }} }} userErrors {{ code }} }} }}"
    withdraw = "mutation ($input: WithdrawInput!) " + bare.format("withdraw")
    await assert_needs(server, withdraw, {"input": withdrawing(alice)}, (Scope.WALLET,))
    withdrawal_id = await pending(server, alice)
    settle = "mutation ($input: SettleWithdrawalInput!) " + bare.format("settleWithdrawal")
    await assert_needs(server, settle, {"input": settling(withdrawal_id)}, (Scope.OPERATE,))


async def test_what_is_of_others_looks_like_what_isn_t_there(
    server: ApiServer, alice: Wallet
) -> None:
    withdrawal_id = await pending(server, alice)
    own = await server.ask(READ, id=withdrawal_id)
    assert own["node"] == {"__typename": "Withdrawal", "id": withdrawal_id}
    assert own["nodes"] == [{"__typename": "Withdrawal", "id": withdrawal_id, "status": "PENDING"}]
    assert await server.ask(READ, auditor(server), id=withdrawal_id) == own
    nobody = await server.ask(READ, id=NOTHING)
    assert nobody == {"withdrawal": None, "node": None, "nodes": [None]}
    for token in (server.token("bob"), operator(server), server.token("alice", Scope.OPERATE)):
        assert await server.ask(READ, token, id=withdrawal_id) == nobody
    for other in (account_id(alice), encode_hold_id(new_id()), "no id"):
        query = "query ($id: ID!) { withdrawal(id: $id) { id } }"
        assert await server.ask(query, id=other) == {"withdrawal": None}


async def test_who_settles_sees_the_withdrawal_and_what_the_settlement_booked(
    server: ApiServer, alice: Wallet
) -> None:
    withdrawal_id = await pending(server, alice)

    payload = await done(server, SETTLE, operator(server), settling(withdrawal_id))

    # The transaction that held the money was made by somebody else.
    assert [each["type"] for each in payload["withdrawal"]["transactions"]] == ["withdrawal"]
    assert payload["withdrawal"]["account"] == {"id": account_id(alice)}


async def test_what_was_done_is_told_where_a_later_field_fails(
    server: ApiServer, alice: Wallet
) -> None:
    query = """
    mutation ($a: WithdrawInput!, $b: SettleWithdrawalInput!) {
      a: withdraw(input: $a) { replayed }
      b: settleWithdrawal(input: $b) { replayed }
    }
    """

    response = await server.post(
        query, {"a": withdrawing(alice), "b": settling(NOTHING)}, token=server.token()
    )

    (noted,) = response.json()["extensions"]["carriedOut"]
    withdrawal = (await done(server, WITHDRAW, server.token(), withdrawing(alice)))["withdrawal"]
    assert noted["path"] == ["a"]
    assert noted["withdrawalId"] == withdrawal["id"]
    assert noted["replayed"] is False

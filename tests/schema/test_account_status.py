"""Freezing, thawing and closing accounts, and what that leaves possible."""

from typing import Any, Final

import pytest

from app.ledger.model import BalanceTracking, Scope
from app.schema.ids import encode_account_id, encode_transaction_id
from tests.schema.operators import (
    WHY,
    assert_needs,
    auditor,
    done,
    everything,
    money,
    operator,
    refused,
    told,
)
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import Wallet, new_id, new_key

SET: Final = f"""
mutation ($input: SetAccountStatusInput!) {{
  setAccountStatus(input: $input) {{ account {{ id code owner status }} {WHY} }}
}}
"""

TRANSFER: Final = f"""
mutation ($input: TransferInput!) {{
  transfer(input: $input) {{ transaction {{ id }} replayed {WHY} }}
}}
"""

PLACE: Final = f"""
mutation ($input: PlaceHoldInput!) {{
  placeHold(input: $input) {{ hold {{ id }} replayed {WHY} }}
}}
"""

VOID: Final = f"""
mutation ($input: VoidHoldInput!) {{ voidHold(input: $input) {{ hold {{ id }} replayed {WHY} }} }}
"""


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def bob(server: ApiServer) -> Wallet:
    return await server.books.wallet("bob", 0, "BRL")


def setting(wallet: Wallet, status: str, **more: Any) -> JsonObject:
    return {"accountId": account_id(wallet), "status": status, **more}


def transferring(source: Wallet, target: Wallet) -> JsonObject:
    return {
        "idempotencyKey": "transfer",
        "fromAccountId": account_id(source),
        "toAccountId": account_id(target),
        "amount": money(1),
    }


async def status(server: ApiServer, wallet: Wallet) -> str:
    query = "query ($id: ID!) { account(id: $id) { status } }"
    return (await server.ask(query, auditor(server), id=account_id(wallet)))["account"]["status"]


async def test_an_account_is_frozen_and_thawed(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    payload = await done(server, SET, operator(server), setting(alice, "FROZEN", reason="dispute"))

    assert payload["account"] == {
        "id": account_id(alice),
        "code": None,
        "owner": "alice",
        "status": "FROZEN",
    }
    assert await status(server, alice) == "FROZEN"
    for source, target, name in ((alice, bob, "fromAccountId"), (bob, alice, "toAccountId")):
        token = server.token(source.owner.subject)
        refusal = await refused(server, TRANSFER, token, transferring(source, target))
        assert told(refusal) == ("ACCOUNT_FROZEN", [name])
        assert (refusal["message"], refusal["retryable"]) == ("The account is frozen.", True)

    await done(server, SET, operator(server), setting(alice, "ACTIVE"))

    # The key stayed free while the account was frozen.
    await done(server, TRANSFER, server.token(), transferring(alice, bob))


async def test_closing_is_final(server: ApiServer, alice: Wallet, bob: Wallet) -> None:
    payload = await done(server, SET, operator(server), setting(bob, "CLOSED"))
    assert payload["account"]["status"] == "CLOSED"

    for other in ("ACTIVE", "FROZEN"):
        refusal = await refused(server, SET, operator(server), setting(bob, other))
        assert told(refusal) == ("ACCOUNT_CLOSED", ["accountId"])
        assert (refusal["message"], refusal["retryable"]) == ("The account is closed.", False)
    refusal = await refused(server, TRANSFER, server.token(), transferring(alice, bob))
    assert told(refusal) == ("ACCOUNT_CLOSED", ["toAccountId"])


async def test_an_account_with_money_or_a_hold_is_not_closed(
    server: ApiServer, alice: Wallet
) -> None:
    hold = {"idempotencyKey": "hold", "accountId": account_id(alice), "amount": money(1_000)}
    refusal = await refused(server, SET, operator(server), setting(alice, "CLOSED"))
    assert told(refusal) == ("ACCOUNT_NOT_EMPTY", ["accountId"])
    assert (refusal["message"], refusal["retryable"]) == (
        "The account still has money or an open hold.",
        True,
    )
    placed = await done(server, PLACE, server.token(), hold)
    # Nothing is left to spend, and yet the account isn't empty.
    refusal = await refused(server, SET, operator(server), setting(alice, "CLOSED"))
    assert told(refusal) == ("ACCOUNT_NOT_EMPTY", ["accountId"])
    void = {"idempotencyKey": "void", "holdId": placed["hold"]["id"]}
    await done(server, VOID, operator(server), void)
    assert await status(server, alice) == "ACTIVE"


async def test_to_set_a_status_again_changes_nothing(server: ApiServer, alice: Wallet) -> None:
    await done(server, SET, operator(server), setting(alice, "FROZEN"))
    before = await everything(server)

    payload = await done(server, SET, operator(server), setting(alice, "FROZEN", reason=None))

    assert payload["account"]["status"] == "FROZEN"
    assert await everything(server) == before


async def test_a_striped_account_is_frozen_with_all_its_children(
    server: ApiServer, alice: Wallet
) -> None:
    hot = Wallet(
        await server.books.open(
            owner="bob", currency="BRL", tracking=BalanceTracking.STRIPED, stripes=4
        ),
        alice.owner,
    )
    await done(server, SET, operator(server), setting(hot, "FROZEN"))
    refusal = await refused(server, TRANSFER, server.token(), transferring(alice, hot))
    assert told(refusal) == ("ACCOUNT_FROZEN", ["toAccountId"])
    await done(server, SET, operator(server), setting(hot, "CLOSED"))
    refusal = await refused(server, TRANSFER, server.token(), transferring(alice, hot))
    assert told(refusal) == ("ACCOUNT_CLOSED", ["toAccountId"])


async def test_what_breaks_a_rule_is_refused(server: ApiServer, alice: Wallet) -> None:
    broken: list[tuple[JsonObject, str, list[str]]] = [
        ({"reason": "r" * 501}, "INVALID_INPUT", ["reason"]),
        ({"reason": "nul\0"}, "INVALID_INPUT", ["reason"]),
        ({"accountId": "no id"}, "ACCOUNT_NOT_FOUND", ["accountId"]),
        ({"accountId": encode_account_id(new_id())}, "ACCOUNT_NOT_FOUND", ["accountId"]),
        ({"accountId": encode_transaction_id(alice.id)}, "ACCOUNT_NOT_FOUND", ["accountId"]),
    ]
    for changed, code, path in broken:
        given = setting(alice, "FROZEN", **changed)
        assert told(await refused(server, SET, operator(server), given)) == (code, path)


@pytest.mark.usefixtures("alice")
async def test_the_account_that_stands_for_the_bank_is_not_closed(server: ApiServer) -> None:
    query = '{ accountByCode(code: "system:bank_clearing:BRL") { id } }'
    bank = (await server.ask(query, auditor(server)))["accountByCode"]["id"]

    given = {"accountId": bank, "status": "CLOSED"}
    refusal = await refused(server, SET, operator(server), given)

    assert told(refusal) == ("INVALID_INPUT", ["accountId"])


# ---------------------------------------------------------------- rights


async def test_who_may_set_a_status(server: ApiServer, alice: Wallet) -> None:
    await assert_needs(server, SET, {"input": setting(alice, "FROZEN")}, (Scope.OPERATE,))


@pytest.mark.parametrize(
    "field",
    [
        "balance { sequence }",
        'balanceAt(at: "2026-01-01T00:00:00Z") { decimal }',
        "entries { totalCount }",
        "entries { nodes { sequence } }",
        "holds { nodes { id } }",
        "withdrawals { nodes { id } }",
    ],
)
async def test_who_may_only_operate_sees_nothing_of_an_account_s_money(
    server: ApiServer, alice: Wallet, field: str
) -> None:
    query = (
        "mutation ($input: SetAccountStatusInput!) "
        f"{{ setAccountStatus(input: $input) {{ account {{ status {field} }} }} }}"
    )
    name = field.partition(" ")[0].partition("(")[0]
    for token in (operator(server), server.token("alice", Scope.OPERATE)):
        given = setting(alice, "FROZEN", reason=new_key())
        answer = (await server.post(query, {"input": given}, token=token)).json()
        assert answer["data"] == {"setAccountStatus": {"account": None}}
        (error,) = answer["errors"]
        assert error["path"] == ["setAccountStatus", "account", name]
        assert error["extensions"] == {"code": "FORBIDDEN", "scopes": ["AUDIT"]}
    both = server.token("op", Scope.OPERATE, Scope.AUDIT)
    owner = server.token("alice", Scope.OPERATE, Scope.WALLET)
    for token in (both, owner):
        data = await server.ask(query, token, input=setting(alice, "FROZEN"))
        assert name in data["setAccountStatus"]["account"]


async def test_what_was_done_is_told_where_a_later_field_fails(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    query = """
    mutation ($a: SetAccountStatusInput!, $b: TransferInput!) {
      a: setAccountStatus(input: $a) { userErrors { code } }
      b: transfer(input: $b) { replayed }
    }
    """
    variables = {"a": setting(bob, "FROZEN"), "b": transferring(alice, bob)}

    response = await server.post(query, variables, token=operator(server))

    assert response.json()["extensions"]["carriedOut"] == [
        {"path": ["a"], "accountId": account_id(bob), "status": "FROZEN"}
    ]

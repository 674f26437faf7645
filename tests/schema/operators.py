"""What the tests of operations have in common: who may send them, and that a refusal changes nothing."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import chain, combinations
from typing import Final

from app.ledger.model import Account, Direction, Scope
from app.ledger.money import Money
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.schema.ids import encode_transaction_id
from tests.schema.server import ApiServer, JsonObject, account_id, now
from tests.support.ledger import OPERATOR, Wallet, new_key, posted
from tests.support.postgres import connect

SCOPES: Final = tuple(
    frozenset(scopes) for scopes in chain(*(combinations(Scope, count) for count in range(4)))
)
"""Every combination of scopes that a token may bear, none included."""

WHY: Final = """
  userErrors {
    __typename code message path retryable
    ... on InsufficientFunds {
      accountId available { minorUnits } required { minorUnits } shortfall { minorUnits }
    }
    ... on IdempotencyConflict { transactionId differingFields }
  }
"""

_MORE_CONTENTS: Final = """
select
  array(select cast(h as text) from hold as h order by h.id) as hold,
  array(select cast(c as text) from account_status_change as c order by c.id) as account_status_change
"""


def money(minor_units: object, currency: str = "BRL") -> JsonObject:
    return {"minorUnits": str(minor_units), "currency": currency}


def token_of(server: ApiServer, subject: str, scopes: frozenset[Scope]) -> str:
    """Issue a token with exactly these scopes, none included."""
    return server.tokens.issue(subject, scopes, now=now(), lifetime=timedelta(hours=1))


def operator(server: ApiServer) -> str:
    """Issue the token of who may operate, which is not to read."""
    return server.token("operator", Scope.OPERATE)


def auditor(server: ApiServer) -> str:
    return server.token("auditor", Scope.AUDIT)


async def everything(server: ApiServer) -> Mapping[str, list[str]]:
    """Read what is booked, holds and changes of status included, to compare before and after."""
    async with connect(server.books.url) as connection:
        more = dict((await connection.fetch(_MORE_CONTENTS))[0].items())
    return {**await server.booked(), **more}


def the_only(answer: JsonObject) -> JsonObject:
    """Take the answer of the one field that was asked for."""
    (payload,) = answer.values()
    return payload


async def done(server: ApiServer, query: str, token: str, given: JsonObject) -> JsonObject:
    """Send a mutation that must be carried out, and return its payload."""
    payload = the_only(await server.ask(query, token, input=given))
    assert payload["userErrors"] == []
    return payload


async def refused(server: ApiServer, query: str, token: str, given: JsonObject) -> JsonObject:
    """Send a mutation that must be refused, see that it changed nothing, and return why."""
    before = await everything(server)
    payload = the_only(await server.ask(query, token, input=given))
    (refusal,) = payload.pop("userErrors")
    assert not any(payload.values())
    assert await everything(server) == before
    assert refusal["message"].endswith(".")
    return refusal


def told(refusal: JsonObject) -> tuple[str, list[str]]:
    """Take what programs depend on: the code, and where below `input` the cause lies."""
    above, *path = refusal["path"]
    assert above == "input"
    return refusal["code"], path


async def assert_needs(
    server: ApiServer,
    query: str,
    variables: JsonObject,
    needed: tuple[Scope, ...],
    *,
    subject: str = "alice",
) -> None:
    """Send an operation with every combination of scopes; whoever has none of the needed ones changes nothing."""
    for scopes in SCOPES:
        before = await everything(server)
        response = await server.post(query, variables, token=token_of(server, subject, scopes))
        errors = response.json().get("errors", [])
        if scopes.intersection(needed):
            assert errors == [], (scopes, errors)
            continue
        (error,) = errors
        assert error["extensions"] == {"code": "FORBIDDEN", "scopes": list(needed)}, scopes
        assert response.json()["data"] is None
        assert await everything(server) == before


async def book(
    server: ApiServer, legs: list[tuple[Account | Wallet, int]], type: str = "sale"
) -> str:
    """Book legs as an operator, each with its signed amount, credit positive, and return the transaction's id."""
    answer = await server.books.ledger.post_transaction(
        OPERATOR,
        PostTransactionCommand(
            key=new_key(), type=type, legs=tuple(_leg(account, amount) for account, amount in legs)
        ),
    )
    return encode_transaction_id(posted(answer).transaction.id)


def _leg(account: Account | Wallet, amount: int) -> LegCommand:
    currency = account.currency if isinstance(account, Account) else account.account.currency
    direction = Direction.CREDIT if amount > 0 else Direction.DEBIT
    return LegCommand(account.id, direction, Money(abs(amount), currency))


async def balances(server: ApiServer, account: Account | Wallet) -> tuple[int, int]:
    """Read what an account has available and held, as an auditor is told."""
    query = """
    query ($id: ID!) {
      account(id: $id) {
        balance { posted { minorUnits } held { minorUnits } available { minorUnits } }
      }
    }
    """
    found = await server.ask(query, auditor(server), id=account_id(account))
    amounts = {name: int(each["minorUnits"]) for name, each in found["account"]["balance"].items()}
    assert amounts["posted"] == amounts["held"] + amounts["available"]
    return amounts["available"], amounts["held"]

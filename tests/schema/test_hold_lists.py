"""Lists of holds and of withdrawals, an account's and everybody's, and the way to them from a transaction."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from sqlalchemy import event

from app.ledger.answers import HoldAnswer, HoldPosted
from app.ledger.model import HoldPurpose, Scope
from app.ledger.money import Money
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
)
from app.schema.cursors import hold_cursor, transaction_cursor
from app.schema.ids import encode_hold_id, encode_transaction_id, encode_withdrawal_id
from tests.schema.operators import assert_needs, auditor, operator, token_of
from tests.schema.server import ApiServer, JsonObject, account_id
from tests.support.ledger import OPERATOR, Wallet, new_id, new_key, posted

ARGUMENTS: Final = "first: $first, after: $after, last: $last, before: $before, status: $status"
PAGE: Final = """
  edges { cursor node { id } } nodes { id status account { id } }
  pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """Holds or withdrawals, in the words of the API."""

    purpose: HoldPurpose
    field: str
    status: str
    open: str
    given_back: str
    """Status of one whose money was given back on demand."""

    def everybodys(self) -> str:
        return f"{self._query('')} {{ {self.field}({ARGUMENTS}) {{ {PAGE} }} }}"

    def of_account(self) -> str:
        page = f"{self.field}({ARGUMENTS}) {{ {PAGE} }}"
        return f"{self._query('$id: ID!, ')} {{ account(id: $id) {{ {page} }} }}"

    def _query(self, more: str) -> str:
        return (
            f"query ({more}$first: Int, $after: String, $last: Int, $before: String, "
            f"$status: {self.status})"
        )


HOLDS: Final = Kind(HoldPurpose.HOLD, "holds", "HoldStatus", "OPEN", "VOIDED")
WITHDRAWALS: Final = Kind(
    HoldPurpose.WITHDRAWAL, "withdrawals", "WithdrawalStatus", "PENDING", "FAILED"
)

both_kinds = pytest.mark.parametrize("kind", [HOLDS, WITHDRAWALS], ids=lambda kind: kind.field)


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000, "BRL")


@pytest.fixture
async def bob(server: ApiServer) -> Wallet:
    return await server.books.wallet("bob", 1_000, "BRL")


def done(answer: HoldAnswer) -> HoldPosted:
    assert isinstance(answer, HoldPosted), answer
    return answer


async def set_aside(server: ApiServer, kind: Kind, wallet: Wallet) -> HoldPosted:
    """Place a hold or ask for a withdrawal, as the wallet's owner."""
    ledger, amount = server.books.ledger, Money(10, "BRL")
    if kind is HOLDS:
        placing = PlaceHoldCommand(new_key(), wallet.id, amount)
        return done(await ledger.place_hold(wallet.owner, placing))
    return done(await ledger.withdraw(wallet.owner, WithdrawCommand(new_key(), wallet.id, amount)))


async def give_back(server: ApiServer, placed: HoldPosted) -> HoldPosted:
    """Void a hold, or let a withdrawal fail."""
    ledger, hold = server.books.ledger, placed.hold
    if hold.purpose is HoldPurpose.HOLD:
        return done(await ledger.void_hold(OPERATOR, VoidHoldCommand(new_key(), hold.id)))
    settling = SettleWithdrawalCommand(new_key(), hold.id, SettlementOutcome.FAILED)
    return done(await ledger.settle_withdrawal(OPERATOR, settling))


async def capture(server: ApiServer, placed: HoldPosted, target: Wallet) -> HoldPosted:
    command = CaptureHoldCommand(new_key(), placed.hold.id, target.id)
    return done(await server.books.ledger.capture_hold(OPERATOR, command))


def id_of(placed: HoldPosted) -> str:
    encode = encode_hold_id if placed.hold.purpose is HoldPurpose.HOLD else encode_withdrawal_id
    return encode(placed.hold.id)


async def page(
    server: ApiServer, kind: Kind, wallet: Wallet | None, **arguments: Any
) -> JsonObject:
    """Read a page of an account's list as its owner, or of everybody's as an auditor."""
    if wallet is None:
        found = (await server.ask(kind.everybodys(), auditor(server), **arguments))[kind.field]
    else:
        token = server.token(wallet.owner.subject)
        answer = await server.ask(kind.of_account(), token, id=account_id(wallet), **arguments)
        found = answer["account"][kind.field]
    assert [edge["node"]["id"] for edge in found["edges"]] == ids(found)
    cursors = [edge["cursor"] for edge in found["edges"]] or [None]
    info = found["pageInfo"]
    assert (info["startCursor"], info["endCursor"]) == (cursors[0], cursors[-1])
    return found


def ids(found: JsonObject) -> list[str]:
    return [node["id"] for node in found["nodes"]]


@both_kinds
@pytest.mark.parametrize("everybodys", [False, True], ids=["account", "everybody"])
async def test_a_list_is_read_newest_first_and_page_by_page(
    server: ApiServer, alice: Wallet, bob: Wallet, kind: Kind, *, everybodys: bool
) -> None:
    other = WITHDRAWALS if kind is HOLDS else HOLDS
    made: list[tuple[Wallet, HoldPosted]] = []
    for wallet in (alice, bob, alice, alice, bob, alice, alice):
        await set_aside(server, other, wallet)
        made.insert(0, (wallet, await set_aside(server, kind, wallet)))
    of = None if everybodys else alice
    wanted = [placed for wallet, placed in made if of in {None, wallet}]
    newest_first = [id_of(placed) for placed in wanted]

    seen: list[str] = []
    after = None
    while True:
        found = await page(server, kind, of, first=2, after=after)
        assert found["pageInfo"]["hasPreviousPage"] is (after is not None)
        seen += ids(found)
        after = found["pageInfo"]["endCursor"]
        if not found["pageInfo"]["hasNextPage"]:
            break
    assert seen == newest_first
    third = (await page(server, kind, of))["edges"][2]["cursor"]
    assert ids(await page(server, kind, of, last=1, before=third)) == newest_first[1:2]
    assert ids(await page(server, kind, of, before=third)) == newest_first[:2]
    assert ids(await page(server, kind, of, last=2)) == newest_first[-2:]

    await give_back(server, wanted[1])
    open_ones = [newest_first[0], *newest_first[2:]]
    assert ids(await page(server, kind, of, status=kind.given_back)) == newest_first[1:2]
    assert ids(await page(server, kind, of, status=kind.open)) == open_ones
    assert ids(await page(server, kind, of, status=kind.open, first=2)) == open_ones[:2]
    assert ids(await page(server, kind, of, status=kind.open, last=2)) == open_ones[-2:]
    assert ids(await page(server, kind, of, status=None)) == newest_first
    statuses = {node["id"]: node["status"] for node in (await page(server, kind, of))["nodes"]}
    assert statuses == {
        each: kind.given_back if each == newest_first[1] else kind.open for each in newest_first
    }


# ---------------------------------------------------------------- rights and mistakes


@both_kinds
async def test_who_may_read_everybody_s_list(server: ApiServer, alice: Wallet, kind: Kind) -> None:
    await set_aside(server, kind, alice)
    await assert_needs(server, kind.everybodys(), {}, (Scope.AUDIT,))


@both_kinds
async def test_who_may_read_an_account_s_list(server: ApiServer, alice: Wallet, kind: Kind) -> None:
    placed = await set_aside(server, kind, alice)
    own = {"account": {kind.field: await page(server, kind, alice)}}
    assert ids(own["account"][kind.field]) == [id_of(placed)]

    query, variables = kind.of_account(), {"id": account_id(alice)}
    assert await server.ask(query, auditor(server), **variables) == own
    for token in (
        server.token("bob"),
        operator(server),
        server.token("alice", Scope.OPERATE),
        token_of(server, "alice", frozenset()),
    ):
        assert await server.ask(query, token, **variables) == {"account": None}


@both_kinds
async def test_g09_a_cursor_of_another_list_opens_nothing(
    server: ApiServer, alice: Wallet, bob: Wallet, kind: Kind
) -> None:
    other = WITHDRAWALS if kind is HOLDS else HOLDS
    placed = (await set_aside(server, kind, alice)).hold.id
    own = hold_cursor(kind.purpose, alice.id, placed)
    everybodys = hold_cursor(kind.purpose, None, placed)
    assert ids(await page(server, kind, alice, after=own)) == []
    assert ids(await page(server, kind, None, after=everybodys)) == []
    foreign = (
        hold_cursor(kind.purpose, bob.id, placed),
        hold_cursor(other.purpose, alice.id, placed),
        hold_cursor(other.purpose, None, placed),
        transaction_cursor(placed),
        own[:-1],
        "",
        "A" * 40,
    )
    for side in ("after", "before"):
        for forged in (*foreign, everybodys):
            error = await server.fail(kind.of_account(), id=account_id(alice), **{side: forged})
            assert error["extensions"] == {"code": "INVALID_CURSOR"}
        for forged in (*foreign, own):
            error = await server.fail(kind.everybodys(), auditor(server), **{side: forged})
            assert error["extensions"] == {"code": "INVALID_CURSOR"}


@both_kinds
async def test_g09_a_silly_page_is_a_bad_request(
    server: ApiServer, alice: Wallet, kind: Kind
) -> None:
    silly: list[JsonObject] = [
        {"first": 0},
        {"last": 101},
        {"first": 1, "last": 1},
        {"status": "GONE"},
        {"status": "OPEN" if kind is WITHDRAWALS else "PENDING"},
    ]
    for arguments in silly:
        error = await server.fail(kind.of_account(), id=account_id(alice), **arguments)
        assert error["extensions"] == {"code": "BAD_REQUEST"}
        error = await server.fail(kind.everybodys(), auditor(server), **arguments)
        assert error["extensions"] == {"code": "BAD_REQUEST"}


# ---------------------------------------------------------------- from a transaction

LINKS: Final = """
query ($ids: [ID!]!) {
  nodes(ids: $ids) {
    ... on Transaction { type hold { id status } withdrawal { id status } }
  }
}
"""


async def links(server: ApiServer, token: str, *transactions: str) -> list[JsonObject | None]:
    return (await server.ask(LINKS, token, ids=list(transactions)))["nodes"]


def transaction_id(placed: HoldPosted) -> str:
    return encode_transaction_id(placed.transaction.id)


async def test_a_transaction_leads_to_what_it_set_aside_as_that_stands_now(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    hold = await set_aside(server, HOLDS, alice)
    captured = await capture(server, hold, bob)
    withdrawal = await set_aside(server, WITHDRAWALS, alice)
    failed = await give_back(server, withdrawal)
    paid = encode_transaction_id(posted(await server.books.transfer(alice, bob, 1)).transaction.id)
    transactions = [*map(transaction_id, (hold, captured, withdrawal, failed)), paid]
    its_hold = {"hold": {"id": id_of(hold), "status": "CAPTURED"}, "withdrawal": None}
    its_withdrawal = {"hold": None, "withdrawal": {"id": id_of(withdrawal), "status": "FAILED"}}
    nothing = {"hold": None, "withdrawal": None}
    everything = [
        {"type": "hold", **its_hold},
        {"type": "capture", **its_hold},
        {"type": "hold", **its_withdrawal},
        {"type": "release", **its_withdrawal},
        {"type": "transfer", **nothing},
    ]

    assert await links(server, server.token("alice"), *transactions) == everything
    assert await links(server, auditor(server), *transactions) == everything
    # Who is paid sees the capture, and not what the money was set aside for.
    assert await links(server, server.token("bob"), *transactions) == [
        None,
        {"type": "capture", **nothing},
        None,
        None,
        {"type": "transfer", **nothing},
    ]
    # Who operates sees the transactions of its own making, and nothing of the account.
    assert await links(server, operator(server), *transactions) == [
        None,
        {"type": "capture", **nothing},
        None,
        {"type": "release", **nothing},
        None,
    ]


async def test_what_transactions_set_aside_is_read_at_once(
    server: ApiServer, alice: Wallet
) -> None:
    placed = [
        transaction_id(await set_aside(server, kind, alice))
        for kind in (HOLDS, WITHDRAWALS)
        for _ in range(10)
    ]
    lent: list[int] = []
    for count in (1, 20):
        with connections_lent(server) as noted:
            await links(server, server.token("alice"), *placed[:count])
        lent.append(len(noted))
    assert lent == [2, 2], "the transactions, and what they set aside"


@contextmanager
def connections_lent(server: ApiServer) -> Generator[list[object]]:
    """Note each connection for reading that is lent."""
    noted: list[object] = []

    def note(connection: object, *_: object) -> None:
        noted.append(connection)

    event.listen(server.reads.engine.pool, "checkout", note)
    try:
        yield noted
    finally:
        event.remove(server.reads.engine.pool, "checkout", note)


async def test_a_payload_s_transaction_leads_to_its_hold(server: ApiServer, alice: Wallet) -> None:
    query = (
        "mutation ($input: PlaceHoldInput!) { placeHold(input: $input) "
        "{ hold { id } transaction { hold { id } withdrawal { id } } } }"
    )
    given = {
        "idempotencyKey": "place",
        "accountId": account_id(alice),
        "amount": {"minorUnits": "10", "currency": "BRL"},
    }

    payload = (await server.ask(query, input=given))["placeHold"]

    assert payload["transaction"] == {"hold": payload["hold"], "withdrawal": None}
    assert await links(server, server.token(), encode_transaction_id(new_id())) == [None]

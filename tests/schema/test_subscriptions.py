"""Live feeds: every entry once and in order, the newest balance, and no gap between a page and a feed."""

import asyncio
import random
from typing import Any

import pytest

from app.ledger.model import BalanceTracking
from app.ledger.posting.decision import Posted
from app.schema.cursors import entry_cursor
from tests.schema.server import (
    ApiServer,
    Socket,
    account_id,
    running_server,
    until,
    until_subscribers,
)
from tests.support.ledger import Wallet, posted
from tests.support.postgres import TestDatabase, connect

ENTRY_POSTED = """
subscription ($id: ID!, $after: String) {
  entryPosted(accountId: $id, after: $after) {
    cursor
    entry {
      id sequence direction amount { minorUnits } balanceAfter { minorUnits }
      account { id } transaction { id type legs { account { code } } }
    }
  }
}
"""

BALANCE_CHANGED = """
subscription ($ids: [ID!]!) {
  balanceChanged(accountIds: $ids) {
    account { id }
    balance { available { minorUnits } sequence }
    transaction { type description }
  }
}
"""


@pytest.fixture
async def bob(server: ApiServer) -> Wallet:
    return await server.books.wallet("bob")


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000)


async def entries(socket: Socket, count: int, operation: str = "1") -> list[dict[str, Any]]:
    return [(await socket.next(operation))["entryPosted"] for _ in range(count)]


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [int(event["entry"]["sequence"]) for event in events]


async def test_a_feed_begins_where_it_is_told_and_goes_on_live(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    for _ in range(2):
        posted(await server.books.transfer(alice, bob, 10))
    async with server.socket() as socket:
        await socket.subscribe(ENTRY_POSTED, "all", id=account_id(alice), after="")
        assert numbers(await entries(socket, 3, "all")) == [1, 2, 3]
        after = entry_cursor(alice.id, 2)
        await socket.subscribe(ENTRY_POSTED, "some", id=account_id(alice), after=after)
        assert numbers(await entries(socket, 1, "some")) == [3]
        await socket.send({"type": "complete", "id": "all"})

        transaction = posted(await server.books.transfer(alice, bob, 7)).transaction

        (event,) = await entries(socket, 1, "some")
        entry = event["entry"]
        assert event["cursor"] == entry_cursor(alice.id, 4)
        assert entry["amount"] == {"minorUnits": "-7"}
        assert entry["direction"] == "DEBIT"
        assert entry["balanceAfter"] == {"minorUnits": "973"}
        assert entry["account"] == {"id": account_id(alice)}
        assert entry["transaction"]["type"] == transaction.type


async def test_a_feed_without_a_cursor_tells_what_comes(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    async with server.socket() as socket:
        for operation, more in (("omitted", {}), ("null", {"after": None})):
            await socket.subscribe(ENTRY_POSTED, operation, id=account_id(alice), **more)
        await until_subscribers(2)
        posted(await server.books.transfer(alice, bob, 1))
        events = {(message := await socket.receive())["id"]: message for _ in range(2)}
    for message in events.values():
        assert message["payload"]["data"]["entryPosted"]["entry"]["sequence"] == "2"
    assert set(events) == {"omitted", "null"}


async def test_a_page_and_a_feed_from_its_newest_edge_leave_no_gap(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    posted(await server.books.transfer(alice, bob, 1))
    page = await server.ask(
        "query ($id: ID!) { account(id: $id) { entries(first: 1) { pageInfo { startCursor } } } }",
        id=account_id(alice),
    )
    newest = page["account"]["entries"]["pageInfo"]["startCursor"]
    posted(await server.books.transfer(alice, bob, 1))  # Between the page and the feed.

    async with server.socket() as socket:
        await socket.subscribe(ENTRY_POSTED, id=account_id(alice), after=newest)
        posted(await server.books.transfer(alice, bob, 1))
        assert numbers(await entries(socket, 2)) == [3, 4]


async def test_f02_every_reader_sees_every_entry_once_and_in_order(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    transfers = 100
    async with server.socket() as first, server.socket() as second:
        for socket in (first, second):
            await socket.subscribe(ENTRY_POSTED, id=account_id(alice), after="")
        answers = await asyncio.gather(
            *(server.books.transfer(alice, bob, 1) for _ in range(transfers))
        )
        assert all(isinstance(answer, Posted) for answer in answers)
        for socket in (first, second):
            events = await entries(socket, transfers + 1)
            assert numbers(events) == list(range(1, transfers + 2))
            balances = [int(event["entry"]["balanceAfter"]["minorUnits"]) for event in events]
            assert balances == list(range(1_000, 1_000 - transfers - 1, -1))


async def test_a_feed_that_was_cut_goes_on_from_its_cursor(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    async with server.socket() as socket:
        await socket.subscribe(ENTRY_POSTED, id=account_id(alice), after="")
        (event,) = await entries(socket, 1)
        socket.connection.transport.abort()
    posted(await server.books.transfer(alice, bob, 1))
    async with server.socket() as socket:
        await socket.subscribe(ENTRY_POSTED, id=account_id(alice), after=event["cursor"])
        assert numbers(await entries(socket, 1)) == [2]


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_feed_that_is_cut_at_random_under_load_misses_and_repeats_nothing(
    database_url: TestDatabase, seed: int
) -> None:
    """Sockets are cut off, and the hub's connection to the database with them, while entries come in."""
    chance = random.Random(seed)
    total = 300
    async with (
        running_server(database_url.runtime_url, broadcast_url=None) as server,
        connect(database_url.superuser_url) as superuser,
        asyncio.TaskGroup() as tasks,
    ):
        wallet = await server.books.wallet("alice")

        async def pay() -> None:
            for _ in range(total):
                posted(await server.books.deposit(wallet.account, 1))

        tasks.create_task(pay())
        seen: list[int] = []
        deafened: list[object] = []
        cursor = ""
        while len(seen) < total:
            async with server.socket() as socket:
                await socket.subscribe(ENTRY_POSTED, id=account_id(wallet), after=cursor)
                for _ in range(min(chance.randint(1, 40), total - len(seen))):
                    (event,) = await entries(socket, 1)
                    seen += numbers([event])
                    cursor = event["cursor"]
                if chance.random() < 0.5:
                    deafened += await superuser.fetch(
                        "select pg_terminate_backend(pid) from pg_stat_activity"
                        " where datname = current_database() and application_name = 'saldo listen'"
                    )
                socket.connection.transport.abort()
    assert seen == list(range(1, total + 1))
    assert deafened


async def test_balances_come_at_once_and_after_each_change(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    savings = await server.books.wallet("alice", 5)
    ids = [account_id(alice), account_id(savings), account_id(alice)]
    async with server.socket() as socket:
        await socket.subscribe(BALANCE_CHANGED, ids=ids)
        first = [(await socket.next())["balanceChanged"] for _ in range(2)]
        assert first == [
            {
                "account": {"id": account_id(wallet)},
                "balance": {"available": {"minorUnits": available}, "sequence": "1"},
                "transaction": None,
            }
            for wallet, available in ((alice, "1000"), (savings, "5"))
        ]

        posted(await server.books.transfer(alice, bob, 400, description="rent"))

        change = (await socket.next())["balanceChanged"]
        assert change == {
            "account": {"id": account_id(alice)},
            "balance": {"available": {"minorUnits": "600"}, "sequence": "2"},
            "transaction": {"type": "transfer", "description": "rent"},
        }


@pytest.mark.parametrize(
    "hot",
    [
        {"tracking": BalanceTracking.STRIPED, "stripes": 2},
        {"tracking": BalanceTracking.DERIVED, "allow_negative": True},
    ],
    ids=lambda hot: hot["tracking"].lower(),
)
async def test_a_hot_account_is_followed_like_any_other(
    server: ApiServer, hot: dict[str, Any]
) -> None:
    """From its beginning, from a cursor, from now on; and its balance with what has moved it."""
    account = await server.books.open(owner="alice", **hot)
    for amount in (1, 2, 3):
        await server.books.deposit(account, amount)

    def amounts(events: list[dict[str, Any]]) -> list[int]:
        assert all(event["entry"]["sequence"] is None for event in events)
        return [int(event["entry"]["amount"]["minorUnits"]) for event in events]

    async with server.socket() as socket:
        await socket.subscribe(ENTRY_POSTED, "all", id=account_id(account), after="")
        events = await entries(socket, 3, "all")
        assert amounts(events) == [1, 2, 3]
        await socket.send({"type": "complete", "id": "all"})
        await until_subscribers(0)
        await socket.subscribe(
            ENTRY_POSTED, "some", id=account_id(account), after=events[1]["cursor"]
        )
        assert amounts(await entries(socket, 1, "some")) == [3]
        await socket.send({"type": "complete", "id": "some"})
        await until_subscribers(0)
        await socket.subscribe(BALANCE_CHANGED, "balance", ids=[account_id(account)])
        first = (await socket.next("balance"))["balanceChanged"]
        assert first["balance"] == {"available": {"minorUnits": "6"}, "sequence": None}
        await socket.subscribe(ENTRY_POSTED, "new", id=account_id(account))
        await until_subscribers(2)

        await server.books.deposit(account, 4, description="rent")

        told = {(message := await socket.receive())["id"]: message for _ in range(2)}
        data = {name: message["payload"]["data"] for name, message in told.items()}
        assert amounts([data["new"]["entryPosted"]]) == [4]
        assert data["balance"]["balanceChanged"] == {
            "account": {"id": account_id(account)},
            "balance": {"available": {"minorUnits": "10"}, "sequence": None},
            "transaction": {"type": "deposit", "description": "rent"},
        }


async def test_f02_a_balance_never_goes_back_and_ends_at_the_truth(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    transfers = 100
    async with server.socket() as socket:
        await socket.subscribe(BALANCE_CHANGED, ids=[account_id(alice)])
        posting = asyncio.gather(*(server.books.transfer(alice, bob, 1) for _ in range(transfers)))
        sequence = 0
        while sequence < transfers + 1:
            balance = (await socket.next())["balanceChanged"]["balance"]
            assert int(balance["sequence"]) > sequence
            sequence = int(balance["sequence"])
            # One transfer of 1 for each number after the deposit: the two belong to one moment.
            assert int(balance["available"]["minorUnits"]) == 1_001 - sequence
        await posting


async def test_p11_idle_feeds_hold_no_connection(
    server: ApiServer, alice: Wallet, bob: Wallet
) -> None:
    async with server.socket() as first, server.socket() as second:
        for socket in (first, second):
            for number in range(50):
                await socket.subscribe(ENTRY_POSTED, str(number), id=account_id(alice))
        await until_subscribers(100)
        await until(lambda: server.connections_in_use == 0)
        assert await server.ask("{ viewer { accounts { totalCount } } }")
        posted(await server.books.transfer(alice, bob, 1))
        for socket in (first, second):
            told = {(await socket.receive())["id"] for _ in range(50)}
            assert told == {str(number) for number in range(50)}

"""The WebSocket door: the protocol's close codes, the bounds, and that whatever ends a socket frees everything."""

import asyncio
import socket as network
from collections.abc import AsyncGenerator
from typing import Any, Final

import orjson
import pytest
import websockets
from structlog.testing import capture_logs

from app.schema import Limits
from tests.schema.server import (
    SUBPROTOCOL,
    ApiServer,
    Socket,
    account_id,
    running_server,
    subscribers,
    until_subscribers,
)
from tests.support.ledger import Wallet, posted
from tests.support.postgres import TestDatabase

ENTRIES = (
    'subscription ($id: ID!) { entryPosted(accountId: $id, after: "") { entry { sequence } } }'
)

FLOOD = """
subscription ($id: ID!) {
  entryPosted(accountId: $id, after: "") { entry { transaction { metadata description } } }
}
"""


@pytest.fixture
async def alice(server: ApiServer) -> Wallet:
    return await server.books.wallet("alice", 1_000)


BAD_FRAMES: Final[tuple[Any, ...]] = (
    "{",
    "[]",
    "1",
    "null",
    '"x"',
    b"\x00",
    "[" * 50_000,
    '{"type": "ping", "payload": NaN}',
    '{"type": "\\ud800"}',
    {},
    {"type": None},
    {"type": ["subscribe"]},
    {"type": "unknown"},
    {"type": "connection_init", "payload": []},
    {"type": "subscribe"},
    {"type": "subscribe", "id": [1], "payload": {"query": "{ __typename }"}},
    {"type": "subscribe", "id": "", "payload": {"query": "{ __typename }"}},
    {"type": "subscribe", "id": "x" * 129, "payload": {"query": "{ __typename }"}},
    {"type": "subscribe", "id": "1", "payload": None},
    {"type": "subscribe", "id": "1", "payload": {"query": 5}},
    {"type": "subscribe", "id": "1", "payload": {"query": "{ a }", "variables": [1]}},
    {"type": "subscribe", "id": "1", "payload": {"query": "{ a }", "operationName": 1}},
    {"type": "complete"},
    {"type": "complete", "id": 1},
)


async def test_a_frame_that_the_protocol_doesn_t_have_closes_with_4400(server: ApiServer) -> None:
    with capture_logs() as logged:
        for frame in BAD_FRAMES:
            async with server.socket() as socket:
                raw = orjson.dumps(frame).decode() if isinstance(frame, dict) else frame
                await socket.connection.send(raw)
                assert await socket.closed() == 4400, frame
    assert logged == []


async def test_the_order_of_the_protocol_is_kept(server: ApiServer, alice: Wallet) -> None:
    async with server.socket() as socket:
        await socket.send({"type": "connection_init"})
        assert await socket.closed() == 4429
    async with server.connect() as socket:
        await socket.subscribe(ENTRIES, id=account_id(alice))
        assert await socket.closed() == 4401
    async with server.socket() as socket:
        await socket.subscribe(ENTRIES, id=account_id(alice))
        await socket.next()
        await socket.subscribe(ENTRIES, id=account_id(alice))
        assert await socket.closed() == 4409
    await until_subscribers(0)


async def test_pings_are_answered_even_before_the_introduction(server: ApiServer) -> None:
    async with server.connect() as socket:
        await socket.send({"type": "ping", "payload": {"a": 1}})
        assert await socket.receive() == {"type": "pong"}
        await socket.send({"type": "pong"})
        await socket.send({"type": "ping"})
        assert await socket.receive() == {"type": "pong"}


async def test_an_id_may_be_used_again_once_its_operation_has_ended(
    server: ApiServer, alice: Wallet
) -> None:
    async with server.socket() as socket:
        await socket.send({"type": "complete", "id": "unknown"})
        for _ in range(3):
            await socket.subscribe(ENTRIES, id=account_id(alice))
            assert (await socket.next())["entryPosted"]["entry"] == {"sequence": "1"}
            await socket.send({"type": "complete", "id": "1"})
        await socket.subscribe(ENTRIES, id="no id")
        assert (await socket.error())["extensions"] == {"code": "ACCOUNT_NOT_FOUND"}
        await socket.subscribe(ENTRIES, id=account_id(alice))
        await socket.next()
        await socket.send({"type": "complete", "id": "1"})
        await until_subscribers(0)
        await socket.send({"type": "ping"})
        assert await socket.receive() == {"type": "pong"}


async def test_another_subprotocol_is_not_spoken(server: ApiServer) -> None:
    for subprotocols in (["graphql-ws"], None):
        async with server.connect(subprotocols=subprotocols) as socket:
            assert await socket.closed() == 4406
    async with server.connect(subprotocols=["graphql-ws", SUBPROTOCOL]) as socket:
        assert socket.connection.subprotocol == SUBPROTOCOL


async def test_a_token_may_come_in_the_handshake(server: ApiServer) -> None:
    headers = {"authorization": f"Bearer {server.token()}"}
    for payload in (None, {}, {"other": 1}, {"Authorization": headers["authorization"]}):
        async with server.connect(additional_headers=headers) as socket:
            await socket.send({"type": "connection_init", "payload": payload})
            assert await socket.receive() == {"type": "connection_ack"}


async def test_without_a_valid_token_the_socket_is_closed_with_4403(server: ApiServer) -> None:
    expired = server.token(lifetime_seconds=-1)
    for payload in (
        None,
        {"authorization": ""},
        {"authorization": "Bearer nonsense"},
        {"authorization": f"Bearer {expired}"},
        {"authorization": 5},
    ):
        async with server.connect() as socket:
            await socket.send({"type": "connection_init", "payload": payload})
            assert await socket.closed() == 4403


async def test_the_end_of_the_token_is_the_end_of_the_socket(
    server: ApiServer, alice: Wallet
) -> None:
    async with server.socket(server.token(lifetime_seconds=2)) as socket:
        await socket.subscribe(ENTRIES, id=account_id(alice))
        await socket.next()
        assert subscribers() == 1
        assert await socket.closed() == 4403
    await until_subscribers(0)


async def test_only_subscriptions_are_served(server: ApiServer) -> None:
    before = await server.booked()
    async with server.socket() as socket:
        for document in (
            "{ viewer { subject } }",
            'mutation { openAccount(input: {idempotencyKey: "k", currency: "BRL"}) { replayed } }',
        ):
            await socket.subscribe(document)
            assert (await socket.error())["extensions"] == {"code": "BAD_REQUEST"}
    assert await server.booked() == before


async def test_a_document_that_can_t_run_is_an_error_and_not_the_end(server: ApiServer) -> None:
    with capture_logs() as logged:
        async with server.socket() as socket:
            for document in (
                "{",
                "subscription {",
                "subscription { nothing }",
                "subscription { ...missing }",
                "subscription { entryPosted { cursor } }",
                "subscription a { entryPosted(accountId: 1) { cursor } } query b { __typename }",
                "subscription ($id: ID!) { entryPosted(accountId: $id) { cursor } }",
                "subscription { balanceChanged(accountIds: []) { __typename } }",
                'subscription { entryPosted(accountId: "\\u0000") { cursor } }',
            ):
                await socket.subscribe(document)
                assert (await socket.error())["extensions"] == {"code": "BAD_REQUEST"}, document
    assert logged == []


@pytest.fixture
async def narrow(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    """Run a server with room for two sockets of two operations, which soon loses its patience."""
    limits = Limits(
        sockets=2, subscriptions_per_socket=2, init_seconds=0.3, send_seconds=0.5, poll_seconds=0.5
    )
    async with running_server(database_url.runtime_url, limits) as running:
        yield running


async def test_who_doesn_t_introduce_himself_is_closed_with_4408(narrow: ApiServer) -> None:
    async with narrow.connect() as socket:
        assert await socket.closed() == 4408


async def test_a_socket_has_room_for_so_many_operations(narrow: ApiServer) -> None:
    alice = await narrow.books.wallet("alice", 1)
    async with narrow.socket() as socket:
        for operation in "12":
            await socket.subscribe(ENTRIES, operation, id=account_id(alice))
            await socket.next(operation)
        for _ in range(100):
            await socket.subscribe(ENTRIES, "3", id=account_id(alice))
        for _ in range(100):
            assert (await socket.error("3"))["extensions"] == {"code": "RATE_LIMITED"}
        await socket.send({"type": "complete", "id": "1"})
        await socket.subscribe(ENTRIES, "3", id=account_id(alice))
        await socket.next("3")


async def test_a_process_has_room_for_so_many_sockets(narrow: ApiServer) -> None:
    async with narrow.socket(), narrow.socket():
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with narrow.connect():
                pass
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["retry-after"] == "1"
    async with asyncio.timeout(10):
        while True:
            try:
                async with narrow.socket():
                    break
            except websockets.InvalidStatus:
                await asyncio.sleep(0.01)


async def test_e07_who_leaves_messages_unread_is_closed_and_holds_nothing(
    narrow: ApiServer,
) -> None:
    alice, bob = await narrow.books.wallet("alice", 1_000), await narrow.books.wallet("bob")
    bulky = {"text": "x" * 4_000}
    await asyncio.gather(
        *(narrow.books.transfer(alice, bob, 1, metadata=bulky) for _ in range(1_000))
    )
    raw = network.socket()
    raw.setsockopt(network.SOL_SOCKET, network.SO_RCVBUF, 4_096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", narrow.port))
    async with (
        narrow.socket() as healthy,
        narrow.socket(sock=raw, max_queue=1, close_timeout=0.1) as stalled,
    ):
        await stalled.subscribe(FLOOD, id=account_id(alice))
        await healthy.subscribe(ENTRIES, id=account_id(alice))
        for number in range(1, 1_002):
            event = await healthy.next()
            assert event["entryPosted"]["entry"] == {"sequence": str(number)}
        await healthy.send({"type": "complete", "id": "1"})
        # The stalled one reads nothing any more, and doesn't answer a closing handshake.
        stalled.connection.transport.pause_reading()
        await until_subscribers(0)
        stalled.connection.transport.abort()


@pytest.mark.parametrize("way", ["close", "abort", "complete"])
async def test_whatever_ends_a_feed_frees_it_at_once(
    server: ApiServer, alice: Wallet, way: str
) -> None:
    async def subscribed(socket: Socket) -> None:
        await socket.subscribe(ENTRIES, id=account_id(alice))
        await socket.next()
        assert subscribers() == 1
        assert server.hub.watched_accounts == 1

    async with server.socket() as socket:
        await subscribed(socket)
        match way:
            case "close":
                await socket.connection.close()
            case "abort":
                socket.connection.transport.abort()
            case _:
                await socket.send({"type": "complete", "id": "1"})
        await until_subscribers(0)
    assert server.hub.watched_accounts == 0
    assert posted(await server.books.transfer(alice, await server.books.wallet("bob"), 1))

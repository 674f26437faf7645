"""A server that is asked to stop under load finishes what it has begun and tells its live clients to come back."""

import asyncio
import itertools
import json
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest
import websockets
from websockets.typing import Subprotocol

from app.embedded import SUPERUSER
from tests.processes.load import (
    FUNDS,
    WAITS_FOR_LOCK,
    Journal,
    check_books,
    postgres_of,
    retry,
    sending,
)
from tests.processes.running import TRANSFER, RunningServer, Wallets, client_of
from tests.processes.waiting import until
from tests.support.postgres import connect, scalar

SERVICE_RESTART = 1012
"""The close code upon which clients connect again."""

ENTRY_POSTED = 'subscription ($id: ID!) { entryPosted(accountId: $id, after: "") { cursor } }'


async def subscribe(server: RunningServer, wallets: Wallets) -> websockets.ClientConnection:
    """Open a live feed and wait for its first message."""
    socket = await websockets.connect(
        server.url.replace("http", "ws") + "/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
        proxy=None,
    )
    authorization = f"Bearer {wallets.owner_token}"
    for message in (
        {"type": "connection_init", "payload": {"authorization": authorization}},
        {
            "type": "subscribe",
            "id": "1",
            "payload": {"query": ENTRY_POSTED, "variables": {"id": wallets.ids[0]}},
        },
    ):
        await socket.send(json.dumps(message))
    assert json.loads(await socket.recv())["type"] == "connection_ack"
    assert json.loads(await socket.recv())["type"] == "next"
    return socket


async def close_code(socket: websockets.ClientConnection) -> int | None:
    """Read until the server closes; a client that doesn't read would never see why."""
    with suppress(websockets.ConnectionClosed):
        while True:
            await socket.recv()
    return socket.close_code


async def test_o10_a_request_that_takes_too_long_is_told_to_come_again(data_dir: Path) -> None:
    variables = {"SALDO_SHUTDOWN_GRACE_SECONDS": "1", "SALDO_STATEMENT_TIMEOUT_MS": "60000"}
    with RunningServer(data_dir, **variables) as server:
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=FUNDS)
            url = postgres_of(data_dir).url(role=SUPERUSER)

            async def somebody_waits() -> bool:
                return await scalar(url, WAITS_FOR_LOCK) > 0

            async with connect(url) as holder:
                # It ends with its connection, when the server stops the database.
                await holder.execute("begin; lock table account in access exclusive mode")
                async with asyncio.TaskGroup() as tasks:
                    stuck = tasks.create_task(
                        client.post(
                            "/graphql",
                            json={"query": TRANSFER, "variables": {"input": wallets.transfer("k")}},
                            headers={"authorization": f"Bearer {wallets.owner_token}"},
                        )
                    )
                    await until(somebody_waits, "the transfer waits for the lock")
                    assert await server.stop_beside() == 0
            answer = stuck.result()

    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.headers["retry-after"]
    assert answer.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
    journal = Journal(sent={"k"})
    with RunningServer(data_dir) as server:
        await retry(server, wallets, journal, journal.unanswered)
        await check_books(data_dir, wallets, journal)
        assert server.stop() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_o10_a_stop_under_load_loses_no_answer(data_dir: Path, workers: str) -> None:
    journal = Journal()
    keys = itertools.count(1)
    with RunningServer(data_dir, "--workers", workers) as server:
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=FUNDS)
        socket = await subscribe(server, wallets)
        async with asyncio.TaskGroup() as tasks:
            code = tasks.create_task(close_code(socket))
            async with sending(server, wallets, journal, keys):
                await journal.answers(200)
                assert await server.stop_beside() == 0

    assert code.result() == SERVICE_RESTART
    with RunningServer(data_dir) as server:
        await retry(server, wallets, journal, journal.unanswered)
        await check_books(data_dir, wallets, journal)
        assert server.stop() == 0

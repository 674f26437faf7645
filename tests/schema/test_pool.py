"""P11: an operation never wants more than one connection, so no number of them can lock each other out."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.schema.server import ApiServer, account_id, running_server
from tests.support.postgres import TestDatabase


@pytest.fixture
async def server(database_url: TestDatabase) -> AsyncGenerator[ApiServer]:
    """Run a server with two connections for reading."""
    async with running_server(
        database_url.runtime_url, pool_size=2, pool_timeout_ms=30_000
    ) as running:
        yield running


async def test_p11_many_large_queries_share_few_connections(server: ApiServer) -> None:
    alice, bob = await server.books.wallet("alice", 1_000), await server.books.wallet("bob")
    await asyncio.gather(*(server.books.transfer(alice, bob, 1) for _ in range(10)))
    fields = "balance { sequence } entries(first: 3) { totalCount nodes { transaction { id } } }"
    query = " ".join(f'a{n}: account(id: "{account_id(alice)}") {{ {fields} }}' for n in range(50))

    answers = await asyncio.gather(
        *(server.ask(f"{{ {query} viewer {{ accounts {{ totalCount }} }} }}") for _ in range(10))
    )

    for data in answers:
        assert data["viewer"]["accounts"]["totalCount"] == "1"
        for number in range(50):
            account = data[f"a{number}"]
            assert account["balance"] == {"sequence": "11"}
            assert account["entries"]["totalCount"] == "11"
            assert len(account["entries"]["nodes"]) == 3
    assert server.connections_in_use == 0


async def test_p11_one_operation_has_one_connection_at_a_time(server: ApiServer) -> None:
    alice = await server.books.wallet("alice", 1_000)
    query = " ".join(
        f'a{n}: account(id: "{account_id(alice)}") {{ balance {{ sequence }} entries {{ totalCount }} }}'
        for n in range(20)
    )
    asking = asyncio.ensure_future(server.ask("{" + query + "}"))
    most = 0
    while not asking.done():
        most = max(most, server.connections_in_use)
        await asyncio.sleep(0)
    await asking
    assert most == 1

"""P11: live feeds that wait hold no connection, and a pool that is used up makes nobody wait for long or look dead."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gql import Client, gql
from gql.transport.websockets import WebsocketsTransport

from app.embedded import SUPERUSER, find_running
from tests.processes.running import BALANCE, TRANSFER, RunningServer, Wallets, client_of, graphql
from tests.support.postgres import connect, scalar

POOL = 5
SOCKETS = 10
SUBSCRIPTIONS_PER_SOCKET = 20

BALANCE_CHANGED = """
subscription ($ids: [ID!]!) { balanceChanged(accountIds: $ids) { balance { available { minorUnits } } } }
"""
READERS = "select count(*) from pg_stat_activity where application_name = 'saldo read'"
IN_TRANSACTION = """
select count(*) from pg_stat_activity where application_name like 'saldo%' and state like 'idle in transaction%'
"""


def superuser_url(data_dir: Path) -> str:
    running = find_running(data_dir)
    assert running is not None
    return running.url(role=SUPERUSER)


@asynccontextmanager
async def subscribed(server: RunningServer, wallets: Wallets) -> AsyncGenerator[list[Any]]:
    """Open many subscriptions and wait for the first message of each, after which they are idle."""
    async with AsyncExitStack() as stack:
        feeds: list[Any] = []
        for _ in range(SOCKETS):
            transport = WebsocketsTransport(
                server.url.replace("http", "ws") + "/graphql",
                subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
                init_payload={"authorization": f"Bearer {wallets.owner_token}"},
                connect_args={"proxy": None},
            )
            session = await stack.enter_async_context(Client(transport=transport))
            for _ in range(SUBSCRIPTIONS_PER_SOCKET):
                request = gql(BALANCE_CHANGED)
                request.variable_values = {"ids": [wallets.ids[1]]}
                feed = session.subscribe(request)
                feeds.append(await stack.enter_async_context(aclosing(feed)))
        firsts = await asyncio.gather(*(anext(feed) for feed in feeds))
        assert all(available(first) == 0 for first in firsts)
        yield feeds


def available(message: Any) -> int:
    return int(message["balanceChanged"]["balance"]["available"]["minorUnits"])


async def test_p11_idle_subscriptions_leave_the_pool_to_others(data_dir: Path) -> None:
    with RunningServer(data_dir, SALDO_POOL_SIZE=str(POOL)) as server:
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=100)
            async with subscribed(server, wallets) as feeds:
                url = superuser_url(data_dir)
                assert await scalar(url, READERS) <= POOL
                assert await scalar(url, IN_TRANSACTION) == 0

                booked = await graphql(client, wallets.owner_token, TRANSFER, wallets.transfer("k"))
                assert booked["transaction"] is not None
                assert await wallets.balances(client) == [99, 1]
                seconds = await asyncio.gather(*(anext(feed) for feed in feeds))
                assert all(available(second) == 1 for second in seconds)
        assert server.stop() == 0


async def test_p11_a_used_up_pool_is_said_quickly_and_health_still_answers(data_dir: Path) -> None:
    with RunningServer(data_dir, SALDO_POOL_SIZE=str(POOL)) as server:
        async with client_of(server, connections=4 * POOL) as client:
            wallets = await Wallets.open(server, client, funds=100)
            async with connect(superuser_url(data_dir)) as holder, holder.transaction():
                await holder.execute("lock table account in access exclusive mode")
                async with asyncio.TaskGroup() as tasks:
                    stuck = [
                        tasks.create_task(
                            client.post(
                                "/graphql",
                                json={"query": BALANCE, "variables": {"id": wallets.ids[0]}},
                                headers={"authorization": f"Bearer {wallets.owner_token}"},
                            )
                        )
                        for _ in range(3 * POOL)
                    ]
                    # The first answer is that of one who got no connection in time; the others still hold theirs.
                    done, _ = await asyncio.wait(stuck, return_when=asyncio.FIRST_COMPLETED)
                    refused = done.pop().result()
                    assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
                    assert refused.headers["retry-after"]
                    assert refused.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
                    assert (await client.get("/healthz")).status_code == HTTPStatus.OK
                    assert (await client.get("/readyz")).status_code == HTTPStatus.OK
            assert await wallets.balances(client) == [100, 0]
        assert server.stop() == 0

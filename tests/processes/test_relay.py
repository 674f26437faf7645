"""A relay in a process of its own delivers what servers without one have booked."""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from gql import Client, gql
from gql.transport.websockets import WebsocketsTransport

from tests.processes.running import (
    ANSWER_SECONDS,
    TRANSFER,
    RunningServer,
    Wallets,
    client_of,
    environment,
    graphql,
)

ENTRY_POSTED = """
subscription ($id: ID!) { entryPosted(accountId: $id, after: "") { entry { sequence } } }
"""


@contextmanager
def running_relay(data_dir: Path) -> Generator["subprocess.Popen[str]"]:
    """Run `saldo relay`, which has said that it delivers."""
    with subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay"],
        env=environment(data_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as relay:
        assert relay.stdout is not None
        assert "delivers events" in relay.stdout.readline()
        try:
            yield relay
        finally:
            relay.kill()


async def test_a_separate_relay_feeds_the_subscriptions_of_a_server(data_dir: Path) -> None:
    # Nothing but an event may wake the feed: it would look by itself only after an hour.
    variables = {"SALDO_RELAY": "off", "SALDO_SUBSCRIPTION_POLL_SECONDS": "3600"}
    with RunningServer(data_dir, **variables) as server, running_relay(data_dir) as relay:
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=100)
            transport = WebsocketsTransport(
                server.url.replace("http", "ws") + "/graphql",
                subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
                init_payload={"authorization": f"Bearer {wallets.owner_token}"},
                connect_args={"proxy": None},
            )
            request = gql(ENTRY_POSTED)
            request.variable_values = {"id": wallets.ids[0]}
            async with (
                Client(transport=transport) as session,
                aclosing(session.subscribe(request)) as feed,
            ):
                assert sequence_of(await anext(feed)) == 1
                for sequence in (2, 3):
                    transfer = wallets.transfer(f"k{sequence}")
                    await graphql(client, wallets.owner_token, TRANSFER, transfer)
                    assert sequence_of(await anext(feed)) == sequence
        relay.send_signal(signal.SIGTERM)
        assert relay.wait(ANSWER_SECONDS) == 0
        assert server.stop() == 0


def sequence_of(message: Any) -> int:
    return int(message["entryPosted"]["entry"]["sequence"])

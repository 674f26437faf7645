"""`saldo serve` as a process: it starts, says so, shares its ledger, and stops in order."""

import signal
import socket
from pathlib import Path

import httpx
import pytest

from app.embedded import find_running
from tests.processes.running import (
    RunningServer,
    Wallets,
    client_of,
    execute,
    run_saldo,
)

VIEWER = "{ viewer { subject scopes } }"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_starts_serves_and_stops_in_order(data_dir: Path, number: signal.Signals) -> None:
    with RunningServer(data_dir) as server:
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            assert client.get("/healthz").text == "alive\n"
            assert client.get("/readyz").text == "ready\n"
            assert "saldo_postings_total" in client.get("/metrics").text

        assert server.stop(number) == 0

        assert server.farewell() == f"Stopping…\nStopped. The ledger stays in {data_dir}.\n"
        assert "Traceback" not in server.log
    assert find_running(data_dir) is None


def test_a_taken_port_is_said_in_one_line(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        refused = run_saldo(data_dir, "serve", "--port", str(port))

    assert refused.returncode == 1
    assert refused.stderr.startswith(f"saldo: Port {port} of 127.0.0.1 can't be had")
    assert len(refused.stderr.splitlines()) == 1
    assert find_running(data_dir) is None


async def test_a_printed_token_is_accepted(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        completed = run_saldo(data_dir, "token", "--sub", "alice", "--scope", "WALLET")
        token = completed.stdout.strip()
        async with client_of(server) as client:
            viewer = await execute(client, token, VIEWER, {})

    assert completed.stdout == f"{token}\n"
    assert viewer == {"subject": "alice", "scopes": ["WALLET"]}


async def test_a_second_server_is_a_server_of_the_same_ledger(data_dir: Path) -> None:
    with RunningServer(data_dir) as first, RunningServer(data_dir) as second:
        async with client_of(first) as there, client_of(second) as here:
            wallets = await Wallets.open(first, there, funds=100)
            assert await wallets.balances(here) == [100, 0]

            assert first.stop() == 0
            # The database is stopped by its last user, not by the first one that goes.
            assert await wallets.balances(here) == [100, 0]
        assert second.stop() == 0
    assert find_running(data_dir) is None


async def test_each_request_has_a_name(data_dir: Path) -> None:
    with RunningServer(data_dir) as server:
        async with client_of(server) as client:
            made = await client.get("/healthz")
            given = await client.get("/healthz", headers={"x-request-id": "from-the-proxy"})
            forged = await client.get("/healthz", headers={"x-request-id": "a" * 129})

    assert len(made.headers["x-request-id"]) == 32
    assert given.headers["x-request-id"] == "from-the-proxy"
    assert len(forged.headers["x-request-id"]) == 32


def test_the_head_of_a_request_is_bounded(data_dir: Path) -> None:
    """A stranger's endless headers, in many pieces or in one, cost the server no memory; others are served meanwhile."""
    with RunningServer(data_dir) as server:
        address = httpx.URL(server.url)
        for endless in (b"a: b\r\n" * 1_000, b"c" * 8_192):
            with socket.create_connection((address.host, address.port or 80)) as stranger:
                stranger.settimeout(20)
                stranger.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nlong: ")
                sent = 0
                try:
                    while sent < 10_000_000:
                        stranger.sendall(endless)
                        sent += len(endless)
                except OSError:
                    pass
                assert sent < 10_000_000
            with httpx.Client(base_url=server.url, trust_env=False) as client:
                assert client.get("/healthz").text == "alive\n"
                assert client.get("/healthz").text == "alive\n"
        assert "Traceback" not in server.log

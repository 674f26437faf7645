"""`saldo serve --workers`: several processes, one port, one ledger, and none of them left behind."""

import re
import signal
from pathlib import Path

import httpx
import psutil
import pytest

from app.embedded import find_running
from tests.processes.running import RunningServer, Wallets, client_of
from tests.processes.waiting import wait_until

WORKERS = 2


def workers_with_metrics(server: RunningServer) -> set[str]:
    """Ask any worker for the metrics, which must be those of all."""
    answer = httpx.get(f"{server.url}/metrics", trust_env=False)
    return set(re.findall(r'^saldo_hub_position\{worker="(\d+)"\}', answer.text, re.MULTILINE))


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


async def test_every_worker_serves_and_is_counted(data_dir: Path) -> None:
    with RunningServer(data_dir, "--workers", str(WORKERS)) as server:
        assert len(server.workers()) == WORKERS
        async with client_of(server) as client:
            wallets = await Wallets.open(server, client, funds=100)
            assert await wallets.balances(client) == [100, 0]
        assert workers_with_metrics(server) == {"0", "1"}

        assert server.stop() == 0
    assert find_running(data_dir) is None


def test_a_killed_worker_is_replaced_and_the_server_goes_on(data_dir: Path) -> None:
    with RunningServer(data_dir, "--workers", str(WORKERS)) as server:
        victim, survivor = server.workers()
        victim.kill()
        wait_until(lambda: is_gone(victim), "the worker is gone")

        # Meanwhile the other one answers; a connection that hung on the dead one would have been refused.
        assert httpx.get(f"{server.url}/readyz", trust_env=False).text == "ready\n"
        wait_until(lambda: workers_with_metrics(server) == {"0", "1"}, "both are counted again")

        pids = {worker.pid for worker in server.workers()}
        assert survivor.pid in pids
        assert victim.pid not in pids
        assert server.stop() == 0
    assert find_running(data_dir) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_stop_with_their_parent(data_dir: Path, number: signal.Signals) -> None:
    with RunningServer(data_dir, "--workers", str(WORKERS)) as server:
        workers = server.workers()

        assert server.stop(number) == 0

        assert server.farewell() == f"Stopping…\nStopped. The ledger stays in {data_dir}.\n"
        assert all(is_gone(worker) for worker in workers)
    assert find_running(data_dir) is None


def test_a_killed_parent_leaves_no_orphan(data_dir: Path) -> None:
    with RunningServer(data_dir, "--workers", str(WORKERS)) as server:
        workers = server.workers()

        server.kill()

        wait_until(lambda: all(map(is_gone, workers)), "the workers have followed their parent")
        # They were users of the embedded PostgreSQL too, so the last of them has stopped it.
        assert find_running(data_dir) is None


def test_a_worker_that_cannot_start_ends_the_server(data_dir: Path) -> None:
    # Each worker reads the secret anew; the parent needs none before it is ready.
    (data_dir / "token-secret").unlink(missing_ok=True)
    (data_dir / "token-secret").mkdir()
    try:
        with pytest.raises(AssertionError, match="the server ended with 1"):
            RunningServer(data_dir, "--workers", str(WORKERS))
    finally:
        (data_dir / "token-secret").rmdir()
    assert find_running(data_dir) is None

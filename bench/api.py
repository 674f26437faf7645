"""What a transfer costs over HTTP and GraphQL: latency at a steady rate, the most that one server takes, and batches.

A real `saldo serve` with an embedded, durable PostgreSQL answers on loopback; the load comes from this process on the same
machine and takes its share of it. Usage: python -m bench.api --help
"""

import asyncio
import itertools
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import asyncpg
import httpx
import psutil
import typer
from uuid_utils.compat import uuid7

from app.embedded import SUPERUSER, find_running
from app.ledger.model import Scope
from app.schema.ids import encode_account_id
from app.tokens import Tokens, local_secret
from bench.load import Sample, Target, run_as_fast_as_it_goes, run_at_rate
from bench.machine import describe_machine

HOST: Final = "127.0.0.1"
SUBJECT: Final = "bench"
START_SECONDS: Final = 60
BATCH: Final = 500

TRANSFER: Final = """
mutation Transfer($input: TransferInput!) {
  transfer(input: $input) {
    transaction { id postedAt }
    entries { sequence amount { minorUnits } balanceAfter { minorUnits } }
    replayed
    userErrors { code message }
  }
}
"""

TRANSFER_BATCH: Final = """
mutation TransferBatch($input: TransferBatchInput!) {
  transferBatch(input: $input) {
    results { transaction { id } replayed userErrors { code } }
    userErrors { code }
  }
}
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and where to reach it."""

    process: psutil.Process
    target: Target
    wallets: list[str]

    def transfer_input(self) -> dict[str, object]:
        """Make up a transfer between two wallets."""
        sender, receiver = random.sample(self.wallets, 2)
        return {
            "idempotencyKey": str(uuid7()),
            "fromAccountId": sender,
            "toAccountId": receiver,
            "amount": {"minorUnits": "100", "currency": "BRL"},
        }

    def transfer(self) -> bytes:
        """Build a request for one transfer."""
        return self.target.encode(TRANSFER, {"input": self.transfer_input()})

    def transfer_batch(self) -> bytes:
        """Build a request for a batch of transfers."""
        transfers = [self.transfer_input() for _ in range(BATCH)]
        return self.target.encode(TRANSFER_BATCH, {"input": {"transfers": transfers}})

    def memory_mib(self) -> float:
        """Return the resident memory of the server's processes, without PostgreSQL's."""
        family = [self.process, *self.process.children(recursive=True)]
        return (
            sum(each.memory_info().rss for each in family if "postgres" not in each.name()) / 2**20
        )


def main(  # noqa: PLR0917 - a command line names its options
    wallets: Annotated[int, typer.Option(help="How many wallets there are.")] = 100_000,
    rate: Annotated[int, typer.Option(help="Transfers a second of the steady part.")] = 500,
    steady_seconds: Annotated[int, typer.Option(help="How long the steady part lasts.")] = 60,
    seconds: Annotated[int, typer.Option(help="How long each of the other parts lasts.")] = 20,
    flat_seconds: Annotated[
        int, typer.Option(help="How long memory is watched under load; 0 leaves it out.")
    ] = 0,
    workers: Annotated[int, typer.Option(help="Server processes.")] = 1,
) -> None:
    """Measure the GraphQL API and print a table."""
    with _serving(wallets, workers) as server:
        start_mib = server.memory_mib()
        print(
            f"{describe_machine()}, {workers} server process(es), {wallets:,} wallets", flush=True
        )
        print(
            f"memory after start: {start_mib:.0f} MiB\n\n| part | rate | p50 ms | p99 ms | failures |"
        )
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        target = server.target
        steady = asyncio.run(
            run_at_rate(target, rate, steady_seconds, server.transfer, _one_is_booked)
        )
        _row(f"transfer, constant {rate}/s for {steady_seconds} s, from intended start", steady)
        fast = asyncio.run(
            run_as_fast_as_it_goes(target, 64, seconds, server.transfer, _one_is_booked)
        )
        _row("transfer, 64 connections", fast)
        batches = asyncio.run(
            run_as_fast_as_it_goes(target, 4, seconds, server.transfer_batch, _all_are_booked)
        )
        _row(f"transferBatch of {BATCH}, 4 connections (transfers/s)", batches, times=BATCH)
        print(f"\nmemory under load: {server.memory_mib():.0f} MiB", flush=True)
        for minute in range(flat_seconds // 60):
            asyncio.run(run_at_rate(target, rate, 60, server.transfer, _one_is_booked))
            print(
                f"memory after {minute + 1} more minutes at {rate}/s: {server.memory_mib():.0f} MiB",
                flush=True,
            )


def _one_is_booked(body: bytes) -> bool:
    return b'"userErrors":[]' in body and b'"errors"' not in body


def _all_are_booked(body: bytes) -> bool:
    return body.count(b'"userErrors":[]') == BATCH + 1 and b'"errors"' not in body


def _row(name: str, sample: Sample, times: int = 1) -> None:
    print(
        f"| {name} | {sample.rate * times:,.0f}/s | {sample.percentile(0.5):.1f} | {sample.percentile(0.99):.1f}"
        f" | {sample.failures} |",
        flush=True,
    )


@contextmanager
def _serving(wallets: int, workers: int) -> Generator[Server]:
    with tempfile.TemporaryDirectory(prefix="saldo-bench-") as directory:
        data_dir, port = Path(directory) / "data", _free_port()
        command = [
            sys.executable,
            "-m",
            "app.cli",
            "serve",
            "--port",
            str(port),
            "--workers",
            str(workers),
        ]
        environment = {**os.environ, "SALDO_DATA_DIR": str(data_dir)}
        with (Path(directory) / "server.log").open("w") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                _wait_until(lambda: _is_ready(port), process)
                numbers = asyncio.run(_open_wallets(data_dir, wallets))
                tokens = Tokens(local_secret(data_dir))
                token = tokens.issue(
                    SUBJECT,
                    frozenset({Scope.WALLET}),
                    now=datetime.now(UTC),
                    lifetime=timedelta(days=1),
                )
                yield Server(psutil.Process(process.pid), Target(HOST, port, token), numbers)
            finally:
                process.terminate()
                process.wait()


async def _open_wallets(data_dir: Path, wallets: int) -> list[str]:
    """Open the wallets by SQL, allowed below zero, so that no transfer is refused and each does all of its work."""
    running = find_running(data_dir)
    if running is None:
        raise RuntimeError("the server's embedded PostgreSQL isn't running")
    ids = [uuid7() for _ in itertools.repeat(None, wallets)]
    connection = await asyncpg.connect(running.url(role=SUPERUSER))
    try:
        await connection.execute(
            "insert into account (id, owner, kind, currency, allow_negative)"
            " select unnest($1::uuid[]), $2, 'LIABILITY', 'BRL', true",
            ids,
            SUBJECT,
        )
        await connection.execute("vacuum analyze account")
        await connection.execute("checkpoint")
    finally:
        await connection.close()
    return [encode_account_id(each) for each in ids]


def _wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the server didn't start")
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://{HOST}:{port}/readyz").is_success
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    typer.run(main)

"""Real processes of the command `saldo`, each in the data directory of a test, and a client that speaks to them."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import httpx
import psutil

from app.ledger.model import Scope
from app.tokens import Tokens, local_secret

PROJECT: Final = Path(__file__).parents[2]
ANSWER_SECONDS: Final = 30.0

OPEN_ACCOUNT: Final = """
mutation ($input: OpenAccountInput!) { openAccount(input: $input) { account { id } userErrors { code message } } }
"""
DEPOSIT: Final = """
mutation ($input: DepositInput!) { deposit(input: $input) { transaction { id } userErrors { code message } } }
"""
TRANSFER: Final = """
mutation ($input: TransferInput!) {
  transfer(input: $input) { transaction { id } replayed userErrors { code message } }
}
"""
BALANCE: Final = "query ($id: ID!) { account(id: $id) { balance { available { minorUnits } } } }"


def environment(data_dir: Path, **variables: str) -> dict[str, str]:
    """Give a process these variables and none of whoever runs the tests."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(PROJECT),
        "SALDO_DATA_DIR": str(data_dir),
        "SALDO_PORT": "0",
        **variables,
    }


def run_saldo(
    data_dir: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(  # noqa: S603 - our own program with the test's arguments
        [sys.executable, "-m", "app.cli", *arguments],
        env=environment(data_dir, **variables),
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=ANSWER_SECONDS,
    )


class RunningServer:
    """A `saldo serve` that has said that it is ready; killed at the end of the block if the test hasn't stopped it."""

    def __init__(self, data_dir: Path, *arguments: str, **variables: str) -> None:
        self.data_dir = data_dir
        # It has no name, so that nothing is left of it however the test ends.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__, or by its collection
        self.process = subprocess.Popen(  # noqa: S603 - see run_saldo
            [sys.executable, "-m", "app.cli", "serve", *arguments],
            env=environment(data_dir, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.url = self._read_url()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children()
            if "worker" in child.cmdline()
        ]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(ANSWER_SECONDS)

    async def stop_beside(self) -> int:
        """Ask it to stop while the test's own event loop goes on, and return its exit status."""
        return await asyncio.to_thread(self.stop)

    def farewell(self) -> str:
        """Read what it said on standard output from its stop signal on, once it has ended."""
        assert self.process.stdout is not None
        _, found, said = self.process.stdout.read().partition("Stopping")
        return found + said

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(ANSWER_SECONDS)

    def token(self, subject: str, *scopes: Scope) -> str:
        """Sign a token as `saldo token` does, without the time that a process takes."""
        tokens = Tokens(local_secret(self.data_dir))
        return tokens.issue(
            subject,
            frozenset(scopes),
            now=datetime.fromtimestamp(time.time(), UTC),
            lifetime=timedelta(minutes=15),
        )

    def _read_url(self) -> str:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            _, found, url = line.partition("Saldo serves on ")
            if found:
                return url.strip()
        self.process.stdout.close()
        status, log = self.process.wait(ANSWER_SECONDS), self.log
        self._log.close()
        raise AssertionError(f"the server ended with {status}:\n{log}")


@dataclass(frozen=True, slots=True)
class Wallets:
    """What a test needs to move money through the API: two wallets of one owner, and who may fill them."""

    owner_token: str
    bank_token: str
    ids: list[str] = field(default_factory=list[str])
    codes: list[str] = field(default_factory=list[str])

    @classmethod
    async def open(
        cls, server: RunningServer, client: httpx.AsyncClient, *, funds: int
    ) -> "Wallets":
        run = uuid4().hex[:8]
        wallets = cls(
            server.token(f"owner-{run}", Scope.WALLET), server.token(f"bank-{run}", Scope.OPERATE)
        )
        for number in range(2):
            code = f"test:{run}:{number}"
            request = {"idempotencyKey": f"open-{number}", "currency": "BRL", "code": code}
            opened = await graphql(client, wallets.owner_token, OPEN_ACCOUNT, request)
            wallets.codes.append(code)
            wallets.ids.append(opened["account"]["id"])
        deposit = {
            "idempotencyKey": "funds",
            "accountId": wallets.ids[0],
            "amount": {"minorUnits": str(funds), "currency": "BRL"},
        }
        assert (await graphql(client, wallets.bank_token, DEPOSIT, deposit))["transaction"]
        return wallets

    def transfer(self, key: str, minor_units: int = 1) -> dict[str, Any]:
        return {
            "idempotencyKey": key,
            "fromAccountId": self.ids[0],
            "toAccountId": self.ids[1],
            "amount": {"minorUnits": str(minor_units), "currency": "BRL"},
        }

    async def balances(self, client: httpx.AsyncClient) -> list[int]:
        answers = [
            await execute(client, self.owner_token, BALANCE, {"id": account_id})
            for account_id in self.ids
        ]
        return [int(answer["balance"]["available"]["minorUnits"]) for answer in answers]


def client_of(server: RunningServer, connections: int = 20) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=server.url,
        timeout=ANSWER_SECONDS,
        limits=httpx.Limits(max_connections=connections),
        trust_env=False,
    )


async def graphql(
    client: httpx.AsyncClient, token: str, document: str, request: dict[str, Any]
) -> dict[str, Any]:
    """Run a mutation whose only variable is its input, and return its payload."""
    return await execute(client, token, document, {"input": request})


async def execute(
    client: httpx.AsyncClient, token: str, document: str, variables: dict[str, Any]
) -> dict[str, Any]:
    """Run an operation and return its only field."""
    answer = await client.post(
        "/graphql",
        json={"query": document, "variables": variables},
        headers={"authorization": f"Bearer {token}"},
    )
    body = answer.json()
    assert "errors" not in body, body
    (value,) = body["data"].values()
    return value

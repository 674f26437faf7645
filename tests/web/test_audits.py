"""The audits of graphql-http, the reference for GraphQL over HTTP, against a running server."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import orjson
import pytest

from tests.schema.server import running_server
from tests.support.postgres import TestDatabase

HERE = Path(__file__).parent


async def run(*command: str) -> bytes:
    """Run a program here and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=HERE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output


@pytest.fixture(scope="session")
async def node() -> str:
    """Find Node.js with the packages of the lock file."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node.js with npm is not installed")
    installed = HERE / "node_modules" / ".package-lock.json"
    if (
        not installed.exists()
        or installed.stat().st_mtime < (HERE / "package-lock.json").stat().st_mtime
    ):
        await run(npm, "ci", "--no-progress")
    return node


async def test_all_audits_of_graphql_over_http_pass(node: str, database_url: TestDatabase) -> None:
    async with running_server(database_url.runtime_url) as server:
        output = await run(node, "audits.mjs", f"http://127.0.0.1:{server.port}/graphql")

    audits = orjson.loads(output)
    assert [audit for audit in audits if audit["status"] != "ok"] == []
    assert Counter(audit["status"] for audit in audits) == {"ok": 61}

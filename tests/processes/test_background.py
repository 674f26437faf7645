"""A background loop that dies is seen, and takes its process down instead of leaving it half dead."""

import asyncio
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from app.background import Background
from app.embedded import find_running
from app.logs import describe_exception
from tests.processes.running import ANSWER_SECONDS, environment

SERVER_WHOSE_RELAY_DIES = """
from app.cli import main
from app.relay.drain import Relay

async def die(relay):
    raise RuntimeError("injected")

Relay.run = die
main()
"""


@pytest.fixture
def background() -> Background:
    return Background(drain_seconds=5.0)


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_loop_that_runs_until_it_is_ended_is_no_failure(background: Background) -> None:
    async with background.running("loop", forever):
        await asyncio.sleep(0)

    assert not background.failed


async def test_a_loop_that_raises_is_seen_and_disturbs_nobody(background: Background) -> None:
    failing = asyncio.Event()

    async def fail() -> None:
        failing.set()
        raise RuntimeError("broken")

    async with background.running("other", forever), background.running("loop", fail):
        await failing.wait()
        await asyncio.sleep(0)
        # The block goes on, so that whoever serves can stop in order.
        assert background.failed


async def test_what_the_block_raises_comes_out_as_it_is(background: Background) -> None:
    ended = asyncio.Event()

    with pytest.raises(RuntimeError, match="the block"):
        async with background.running("loop", forever, end=ended.set):
            raise RuntimeError("the block")

    assert ended.is_set()
    assert not background.failed


async def test_a_loop_that_ends_by_itself_is_seen(background: Background) -> None:
    async def end() -> None:
        await asyncio.sleep(0)

    async with background.running("loop", end):
        await asyncio.sleep(0.01)
        assert background.failed


async def test_a_loop_that_is_told_to_end_may_finish_its_work(background: Background) -> None:
    told = asyncio.Event()
    finished = asyncio.Event()

    async def work() -> None:
        await told.wait()
        await asyncio.sleep(0.01)
        finished.set()

    async with background.running("loop", work, end=told.set):
        pass

    assert finished.is_set()
    assert not background.failed


async def test_a_loop_that_does_not_end_in_time_is_cancelled() -> None:
    background = Background(drain_seconds=0.01)

    async with background.running("loop", forever, end=lambda: None):
        pass

    assert not background.failed


def test_a_server_whose_relay_dies_ends_in_order_with_an_error(data_dir: Path) -> None:
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", SERVER_WHOSE_RELAY_DIES, "serve"],
        env=environment(data_dir),
        capture_output=True,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=ANSWER_SECONDS,
    )

    assert ended.returncode == 1
    assert "a background loop failed; the process stops" in ended.stderr
    assert "RuntimeError: injected" in ended.stderr
    assert find_running(data_dir) is None


def test_the_text_of_a_database_error_never_reaches_the_log() -> None:
    """PostgreSQL quotes the row and SQLAlchemy the parameters; both hold keys and amounts."""
    quoting = asyncpg.UniqueViolationError("duplicate key: Key (caller, key)=(alice, secret-key)")
    wrapped = DBAPIError("insert into t values (:key)", {"key": "secret-key"}, quoting)
    try:
        raise wrapped from quoting
    except DBAPIError as error:
        shown = "".join(describe_exception(error))

    assert "secret-key" not in shown
    assert "DBAPIError" in shown
    assert "SQLSTATE 23505" in shown


def test_other_errors_are_logged_with_their_causes() -> None:
    group = ExceptionGroup("several", [RuntimeError("the member")])
    group.__cause__ = ValueError("the cause")

    shown = "".join(describe_exception(group))

    assert shown.index("ValueError: the cause") < shown.index("ExceptionGroup")
    assert "RuntimeError: the member" in shown

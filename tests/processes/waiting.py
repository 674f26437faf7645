"""Waiting for what other processes do: a look every few milliseconds, until a deadline that is an error."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

DEADLINE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.02


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Block until the condition holds; raises AssertionError that says what didn't happen."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(_LOOK_SECONDS)


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait without blocking the event loop."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not await condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        await asyncio.sleep(_LOOK_SECONDS)

"""Trying again: pauses that grow, and loops that outlive their failures."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

import asyncpg
import structlog

from app.database import DatabaseUnavailableError

log = structlog.get_logger(__name__)

_GOOD_RUN_SECONDS: Final = 10.0
"""What has run for so long before it failed is not failing in a row."""


def jittered(seconds: float) -> float:
    """Vary a time by up to a quarter, so that what began together doesn't stay in step."""
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret


def database_is_away(error: Exception) -> bool:
    """Tell whether an error says no more than that the database can't be reached or doesn't answer for now."""
    return isinstance(error, (DatabaseUnavailableError, asyncpg.InterfaceError, OSError))


class Backoff:
    """Pauses between attempts: each about twice as long as the one before, up to the longest."""

    def __init__(self, first_seconds: float = 0.05, longest_seconds: float = 2.0) -> None:
        """Begin with the first pause."""
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._next_seconds = first_seconds

    async def pause(self) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(jittered(self._next_seconds))
        self._next_seconds = min(self._next_seconds * 2, self._longest_seconds)

    def reset(self) -> None:
        """Begin again with the first pause, after a success."""
        self._next_seconds = self._first_seconds


async def keep_running(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run a loop until cancelled; where it fails, log why and start it again after a pause."""
    loop = asyncio.get_running_loop()
    backoff = Backoff()
    while True:
        started_at = loop.time()
        try:
            await work()
        except Exception as error:
            if database_is_away(error):
                log.warning("a loop waits for the database", loop=name, error=repr(error))
            else:
                log.exception("a loop failed and is started again", loop=name)
        if loop.time() - started_at > _GOOD_RUN_SECONDS:
            backoff.reset()
        await backoff.pause()

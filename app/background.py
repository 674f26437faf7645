"""Loops that run beside the server, each seen: one that fails or ends by itself brings the process down in order.

A server whose relay has died looks healthy and tells nobody anything. So nothing here is restarted in silence; what can
heal itself does so within its own loop, and what comes out of it is a fault.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)


class Background:
    """The background loops of a process, and whether all of them still run."""

    def __init__(self, *, drain_seconds: float) -> None:
        """Give a loop that is told to end `drain_seconds` for it."""
        self._drain_seconds = drain_seconds
        self._failed = False

    @property
    def failed(self) -> bool:
        """Whether a loop has ended although nobody asked it to."""
        return self._failed

    @contextlib.asynccontextmanager
    async def running(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        *,
        end: Callable[[], None] | None = None,
    ) -> AsyncGenerator[None]:
        """Run a loop for as long as the block lasts; at its end call `end`, or cancel the loop where there is none.

        What the block raises comes out as it is, not in the group that a task group makes of it.
        """
        ending = asyncio.Event()
        raised: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._watch(name, run, ending))
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, outside of the task group
                raised = error
            finally:
                ending.set()
                if end is not None:
                    end()
                    await asyncio.wait({task}, timeout=self._drain_seconds)
                task.cancel()
        if raised is not None:
            raise raised

    async def _watch(
        self, name: str, run: Callable[[], Awaitable[None]], ending: asyncio.Event
    ) -> None:
        try:
            await run()
        except Exception:
            # Whatever it is, it must be seen here: the task group would cancel the server instead of stopping it.
            log.exception("a background loop failed; the process stops", loop=name)
            self._failed = True
            return
        if not ending.is_set():
            log.error("a background loop ended; the process stops", loop=name)
            self._failed = True

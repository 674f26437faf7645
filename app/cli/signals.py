"""SIGINT and SIGTERM, which both mean: stop in order."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Final

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def on_stop_signal(action: Callable[[], None]) -> None:
    """Call `action` at each stop signal from now on."""
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: action())


def run_until_stopped(work: Callable[[asyncio.Event], Coroutine[None, None, bool]]) -> bool:
    """Run `work` in an event loop of its own, with an event that a stop signal sets; afterwards such signals are ignored."""

    async def run() -> bool:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        return await work(stop)

    try:
        return asyncio.run(run())
    finally:
        # The loop takes its handlers along when it closes, and what is still to be put in order must not be broken off.
        on_stop_signal(ignore)


def interrupt() -> None:
    """Break off what runs, so that each `finally` on the way out cleans up; for the time before anything is served."""
    raise KeyboardInterrupt


def ignore() -> None:
    """Do nothing: the process is already on its way out."""

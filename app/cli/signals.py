"""SIGINT and SIGTERM, which both mean: stop in order."""

import signal
from collections.abc import Callable
from typing import Final

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def on_stop_signal(action: Callable[[], None]) -> None:
    """Call `action` at each stop signal from now on."""
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: action())


def interrupt() -> None:
    """Break off what runs, so that each `finally` on the way out cleans up; for the time before anything is served."""
    raise KeyboardInterrupt


def ignore() -> None:
    """Do nothing: the process is already on its way out."""

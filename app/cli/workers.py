"""Several server processes on one listening socket, watched by the process that was started.

Each worker is a fresh interpreter: a copy of a running one would share the state of random generators and libraries. It
inherits the listening socket. Its standard input is a pipe whose other end only the parent holds, so that the end of the
parent, even by `kill -9`, is the end of that pipe, upon which the worker stops in order. On its standard output it says one
word, once it serves.

A worker that ends is replaced, after a pause that grows while its successors don't get as far as serving.
"""

import asyncio
import contextlib
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from app.cli.errors import CommandError
from app.cli.signals import STOP_SIGNALS

log = structlog.get_logger(__name__)

READY: Final = "ready"
"""What a worker says once it serves."""

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 10.0
_OVERTIME_SECONDS: Final = 5.0
"""How long after its time to stop a worker is killed."""


class Workers:
    """A number of worker processes; `run` keeps them alive until a stop signal comes."""

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        count: int,
        listener: socket.socket,
        *,
        grace_seconds: float,
        ready: Callable[[], None],
        leaving: Callable[[], None],
    ) -> None:
        """Take what makes the command line of a worker from its number.

        Calls `ready` once all of them serve, and `leaving` when they are about to be stopped.
        """
        self._command = command
        self._count = count
        self._listener = listener
        self._grace_seconds = grace_seconds
        self._when_ready = ready
        self._when_leaving = leaving
        self._serving: set[int] = set()
        self._processes: dict[int, Process] = {}
        self._started = False
        self._failed_to_start = False
        """Whether a worker ended by itself before all of them had served."""
        self._stopping = asyncio.Event()
        self._clean = True

    async def run(self) -> bool:
        """Serve until stopped; tells whether every worker stopped in order.

        Raises CommandError where one of them can't even start.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop)
        async with asyncio.TaskGroup() as tasks:
            keepers = [tasks.create_task(self._keep(number)) for number in range(self._count)]
            killer = tasks.create_task(self._kill_the_late())
            await asyncio.wait(keepers)
            killer.cancel()
        if self._failed_to_start:
            raise CommandError("A server process didn't start; its message stands above.")
        return self._clean

    async def _keep(self, number: int) -> None:
        """Run one worker, and another in its place whenever it ends."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            status, served = await self._run_once(number)
            if self._stopping.is_set():
                # A worker that had not got as far as handling the signal is ended by it, and has nothing to put in order.
                in_order = status == 0 or (status == -signal.SIGTERM and not served)
                self._clean = self._clean and in_order
                return
            if not self._started:
                self._failed_to_start = True
                self._stop()
                return
            log.error("a worker ended and is replaced", worker=number, status=status)
            pause_seconds = (
                _FIRST_PAUSE_SECONDS if served else min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await self._stopping.wait()

    async def _run_once(self, number: int) -> tuple[int, bool]:
        """Run a worker to its end; returns its exit status and whether it got as far as serving."""
        process = await asyncio.create_subprocess_exec(
            *self._command(number),
            stdin=PIPE,
            stdout=PIPE,
            pass_fds=(self._listener.fileno(),),
            # Ctrl-C goes to the terminal's whole process group; the parent alone tells its workers to stop.
            start_new_session=True,
        )
        self._processes[number] = process
        if self._stopping.is_set():
            _tell_to_stop(process)
        try:
            if process.stdout is None:
                raise AssertionError("the worker's output was asked for")
            served = (await process.stdout.readline()).decode().strip() == READY
            if served:
                self._serves(number)
            return await process.wait(), served
        finally:
            del self._processes[number]

    def _serves(self, number: int) -> None:
        self._serving.add(number)
        if len(self._serving) == self._count and not self._started:
            self._started = True
            self._when_ready()

    def _stop(self) -> None:
        """Have every worker stop in order; the second call no longer lets them wait for requests under way."""
        if not self._stopping.is_set():
            self._when_leaving()
        self._stopping.set()
        # With the last copy gone, connections are refused instead of queueing up for nobody.
        self._listener.close()
        for process in self._processes.values():
            _tell_to_stop(process)

    async def _kill_the_late(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(self._grace_seconds + _OVERTIME_SECONDS)
        for number, process in self._processes.items():
            log.error("a worker didn't stop in time and is killed", worker=number)
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def _tell_to_stop(process: Process) -> None:
    # It may have ended already, with nobody told yet.
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)

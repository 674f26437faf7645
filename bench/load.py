"""A small load generator for HTTP/1.1 on loopback: keep-alive connections, one request at a time on each.

It parses no more of an answer than it must, so that it leaves the machine to the server that is measured.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import orjson

_LENGTH: Final = b"content-length: "


@dataclass(slots=True)
class Sample:
    """What a run saw: latencies in seconds of answered requests, and how many failed in whatever way."""

    latencies: list[float] = field(default_factory=list[float])
    failures: int = 0
    elapsed: float = 0.0

    def percentile(self, share: float) -> float:
        """Return the latency, in milliseconds, below which this share of the requests was answered."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000

    @property
    def rate(self) -> float:
        """Answered requests per second."""
        return len(self.latencies) / self.elapsed


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, and with whose token."""

    host: str
    port: int
    token: str

    def encode(self, query: str, variables: object) -> bytes:
        """Build a POST of a GraphQL operation."""
        body = orjson.dumps({"query": query, "variables": variables})
        head = (
            f"POST /graphql HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nauthorization: Bearer {self.token}\r\n"
            f"content-type: application/json\r\naccept: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class Connection:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, target: Target) -> "Connection":
        """Connect to the target."""
        return cls(*await asyncio.open_connection(target.host, target.port, limit=2**24))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return the status and the body of its answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        start = head.lower().index(_LENGTH) + len(_LENGTH)
        length = int(head[start : head.index(b"\r", start)])
        return int(head[9:12]), await self._reader.readexactly(length)

    def close(self) -> None:
        """Drop the connection."""
        self._writer.close()


async def run_at_rate(
    target: Target,
    rate: int,
    seconds: int,
    request: Callable[[], bytes],
    good: Callable[[bytes], bool],
) -> Sample:
    """Send at a constant rate whatever the answers do, and count each latency from its intended start.

    A server that stalls is so charged for the requests that would have come meanwhile.
    """
    sample = Sample()
    idle: list[Connection] = [await Connection.open(target) for _ in range(64)]
    begin = time.perf_counter() + 0.1

    async def one(intended: float) -> None:
        connection = idle.pop() if idle else await Connection.open(target)
        try:
            status, body = await connection.send(request())
        except (OSError, asyncio.IncompleteReadError):
            sample.failures += 1
            return
        idle.append(connection)
        if status == 200 and good(body):
            sample.latencies.append(time.perf_counter() - intended)
        else:
            sample.failures += 1

    async with asyncio.TaskGroup() as tasks:
        for number in range(rate * seconds):
            intended = begin + number / rate
            delay = intended - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            tasks.create_task(one(intended))
    sample.elapsed = time.perf_counter() - begin
    for connection in idle:
        connection.close()
    return sample


async def run_as_fast_as_it_goes(
    target: Target,
    connections: int,
    seconds: int,
    request: Callable[[], bytes],
    good: Callable[[bytes], bool],
) -> Sample:
    """Keep this many connections busy, each sending its next request when the last is answered."""
    sample = Sample()
    begin = time.perf_counter()
    deadline = begin + seconds

    async def client() -> None:
        connection = await Connection.open(target)
        while time.perf_counter() < deadline:
            sent = time.perf_counter()
            status, body = await connection.send(request())
            if status == 200 and good(body):
                sample.latencies.append(time.perf_counter() - sent)
            else:
                sample.failures += 1
        connection.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(connections):
            tasks.create_task(client())
    sample.elapsed = time.perf_counter() - begin
    return sample

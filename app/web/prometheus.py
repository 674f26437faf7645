"""`/metrics` for Prometheus: one scrape shows every process of the server, whichever of them the scrape happens to reach.

Processes share a listening socket, so a scrape lands on any of them. Each therefore also answers on a Unix socket in a
directory that only its siblings know, and whoever is scraped asks the others and labels each series with its `worker`.
The library's own way of joining processes writes a file for every metric and process, loses what gauges mean, and has to be
set up by a variable before the first import.

A server of one process has no siblings and no such label. A second server is another target of Prometheus.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import REGISTRY, Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_SIBLING_SECONDS: Final = 1.0
"""A sibling whose event loop stands still is left out rather than waited for."""

_SUFFIX: Final = ".metrics"


@dataclass(frozen=True, slots=True)
class Siblings:
    """Where the processes of one server find each other's metrics."""

    directory: Path
    worker: int
    """This process's number; a process that replaces another takes its number."""

    def socket(self, worker: int) -> Path:
        """Name the socket of a process."""
        return self.directory / f"{worker}{_SUFFIX}"

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncGenerator[None]:
        """Answer the siblings' questions for as long as the block lasts."""
        path = self.socket(self.worker)
        # A process that was killed leaves its socket behind.
        self.directory.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        async with await asyncio.start_unix_server(_answer, path):
            yield
        path.unlink(missing_ok=True)
        # The last one to go takes the directory with it, in case nobody else is left to do so.
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    async def ask(self) -> Sequence[tuple[str, str]]:
        """Ask every process but this one; returns the label and the text of each that answers."""
        others = [
            path for path in self.directory.glob(f"*{_SUFFIX}") if path != self.socket(self.worker)
        ]
        texts = await asyncio.gather(*map(_ask, others))
        return [
            (path.stem, text) for path, text in zip(others, texts, strict=True) if text is not None
        ]


def metrics_routes(siblings: Siblings | None) -> Sequence[BaseRoute]:
    """Serve `/metrics`; without siblings the process speaks for itself alone."""

    async def metrics(_request: Request) -> Response:
        if siblings is None:
            body = generate_latest(REGISTRY)
        else:
            own = (str(siblings.worker), generate_latest(REGISTRY).decode())
            body = _join([own, *await siblings.ask()])
        return Response(body, media_type=CONTENT_TYPE_LATEST)

    return (Route("/metrics", metrics),)


async def _answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.write(generate_latest(REGISTRY))
        writer.write_eof()
        await writer.drain()
    writer.close()


async def _ask(path: Path) -> str | None:
    try:
        async with asyncio.timeout(_SIBLING_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None


def _join(texts: Iterable[tuple[str, str]]) -> bytes:
    """Write the metrics of several processes as one text, each series with its process's label."""
    families: dict[str, Metric] = {}
    for worker, text in texts:
        for family in text_string_to_metric_families(text):
            joined = families.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for sample in family.samples:
                joined.samples.append(sample._replace(labels={"worker": worker, **sample.labels}))
    registry = CollectorRegistry()
    registry.register(_Collected(families.values()))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families

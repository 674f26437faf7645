"""A Unix socket in front of PostgreSQL's own, which cuts the wire at the worst moment: around a COMMIT."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

_COMMIT = b"COMMIT"
_READ_BYTES = 65_536


class Cut(Enum):
    """When the wire breaks."""

    NEVER = "never"
    BEFORE_COMMIT = "before commit"
    """PostgreSQL never hears of the COMMIT, so nothing is booked."""
    AFTER_COMMIT = "after commit"
    """PostgreSQL has committed and said so, but the client never hears it."""


@dataclass(slots=True)
class CuttingProxy:
    """Passes everything on, until the next COMMIT when `cut` says so; then it passes everything again."""

    server: Path
    url: str = ""
    cut: Cut = Cut.NEVER
    cuts: int = 0
    """How many connections were broken so far."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either end closes it or its wire is cut."""
        from_server, to_server = await asyncio.open_unix_connection(str(self.server))
        answers = asyncio.ensure_future(self._pass_answers(from_server, writer))
        try:
            while data := await reader.read(_READ_BYTES):
                if self.cut is not Cut.NEVER and _COMMIT in data:
                    if self.cut is Cut.AFTER_COMMIT:
                        answers.cancel()
                        await asyncio.wait([answers])
                        to_server.write(data)
                        await from_server.readuntil(_COMMIT)
                    self.cut = Cut.NEVER
                    self.cuts += 1
                    return
                to_server.write(data)
        except ConnectionError:
            pass
        finally:
            answers.cancel()
            await asyncio.wait([answers])
            for end in (to_server, writer):
                end.transport.abort()

    async def _pass_answers(
        self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await from_server.read(_READ_BYTES):
                writer.write(data)
            writer.close()


@contextlib.asynccontextmanager
async def cutting_proxy(url: str) -> AsyncGenerator[CuttingProxy]:
    """Put a proxy in front of the server of `url`; the proxy's own `url` leads through it."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    socket = f".s.PGSQL.{query['port'][0]}"
    proxy = CuttingProxy(Path(query["host"][0]) / socket)
    with tempfile.TemporaryDirectory(prefix="saldo-") as directory:
        proxy.url = url.replace(quote(query["host"][0]), quote(directory))
        server = await asyncio.start_unix_server(proxy.serve, str(Path(directory) / socket))
        async with server:
            yield proxy

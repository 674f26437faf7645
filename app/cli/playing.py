"""`saldo demo`: gives the story a screen, a server and tokens."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console

from app.cli.errors import CommandError
from app.cli.tokens import issue_token
from app.demo import Api, ServerTroubleError, play
from app.demo.screen import Screen
from app.demo.story import CONCURRENCY
from app.ledger.model import Scope
from app.settings import Settings
from app.tokens import KEY_FILE

_LIFETIME: Final = timedelta(minutes=15)


def play_demo(settings: Settings, url: str | None) -> bool:
    """Play against the server; tells whether every proof holds. Raises CommandError."""
    address = f"http://127.0.0.1:{settings.port}" if url is None else _address(url)

    def issue(subject: str, scopes: Sequence[str]) -> str:
        # A secret that is made here would be nobody's: only the server's own is of use.
        if settings.jwt_secret is None and not (settings.data_dir / KEY_FILE).exists():
            raise CommandError(
                f"There is no token secret in {settings.data_dir}. Start the server in this folder first, "
                "or give the server's secret with --secret."
            )
        return issue_token(settings, subject, frozenset(map(Scope, scopes)), _LIFETIME)

    async def run() -> bool:
        screen = Screen(Console())
        async with Api(address, connections=CONCURRENCY) as api:
            return await play(api, screen, issue)

    trouble: BaseException | None = None
    try:
        return asyncio.run(run())
    except* ServerTroubleError as group:
        # Whatever came first; the others are its consequences.
        trouble = _first(group)
    raise CommandError(str(trouble))


def _address(url: str) -> str:
    """Read the address of a server, with or without the path of its API."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise CommandError(
            "--url must be an address such as http://127.0.0.1:8000, with http:// or https://."
        )
    return url.rstrip("/").removesuffix("/graphql")


def _first(group: BaseExceptionGroup[ServerTroubleError]) -> BaseException:
    first: BaseException = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first

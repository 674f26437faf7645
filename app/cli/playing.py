"""`saldo demo`: gives the story a screen, a server and tokens."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from rich.console import Console

from app.cli.errors import CommandError
from app.cli.tokens import issue_token
from app.demo import Api, ServerTroubleError, play
from app.demo.screen import Screen
from app.demo.story import CONCURRENCY
from app.ledger.model import Scope
from app.settings import Settings

_LIFETIME: Final = timedelta(minutes=15)


def play_demo(settings: Settings, url: str | None) -> bool:
    """Play against the server; tells whether every proof holds. Raises CommandError."""

    def issue(subject: str, scopes: Sequence[str]) -> str:
        return issue_token(settings, subject, frozenset(map(Scope, scopes)), _LIFETIME)

    async def run() -> bool:
        screen = Screen(Console())
        async with Api(url or f"http://127.0.0.1:{settings.port}", connections=CONCURRENCY) as api:
            return await play(api, screen, issue)

    trouble: BaseException | None = None
    try:
        return asyncio.run(run())
    except* ServerTroubleError as group:
        # Whatever came first; the others are its consequences.
        trouble = _first(group)
    raise CommandError(str(trouble))


def _first(group: BaseExceptionGroup[ServerTroubleError]) -> BaseException:
    first: BaseException = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first

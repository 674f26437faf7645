"""What a server says to whoever started it: when it is ready, where it is and what to try next; when it stops, that it does."""

import os
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Final

from app.cli.tokens import issue_token
from app.ledger.model import Scope
from app.settings import Settings

_SUBJECT: Final = "alice"
_LIFETIME: Final = timedelta(hours=12)

STOPPING: Final = "Stopping…\n"


def say(text: str) -> None:
    """Write to standard output past its buffer: what can't be written, because nobody reads it, must not spoil the stop."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), text.encode())


def farewell(settings: Settings) -> str:
    """Write the last line, for settings as they were given: it names where an embedded PostgreSQL keeps the ledger."""
    if settings.database_url is None:
        return f"Stopped. The ledger stays in {settings.data_dir}.\n"
    return "Stopped.\n"


def welcome(settings: Settings, address: str) -> str:
    """Write the greeting; the token in it is for the secret of a laptop only, never for one that was configured."""
    lines = [f"Saldo serves on {address}", ""]
    if settings.graphiql:
        lines.append(f"  GraphiQL   {address}/graphql")
    lines += [
        f"  GraphQL    {address}/graphql, over POST and graphql-transport-ws",
        f"  Health     {address}/healthz, {address}/readyz",
        f"  Metrics    {address}/metrics",
    ]
    if settings.jwt_secret is None:
        token = issue_token(settings, _SUBJECT, frozenset(Scope), _LIFETIME)
        lines += [
            "",
            f"A token for {_SUBJECT} with every scope, good for {_LIFETIME.total_seconds() / 3600:.0f} hours:",
            "",
            f"  {token}",
            "",
            "Try:",
            "",
            f"  curl -s {address}/graphql -H 'Content-Type: application/json' \\",
            f"    -H 'Authorization: Bearer {token}' \\",
            """    -d '{"query": "{ viewer { subject scopes accounts { nodes { code balance { available { decimal currency } } } } } }"}'""",
        ]
    lines += ["", f"Or watch a whole story:  .venv/bin/saldo demo --url {address}", "", ""]
    return "\n".join(lines)

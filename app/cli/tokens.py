"""Tokens for the command line, signed with the secret that the server of the same settings checks."""

import time
from datetime import UTC, datetime, timedelta

from app.cli.database import name_new_ledger
from app.ledger.model import Scope
from app.main import tokens_of
from app.settings import Settings


def issue_token(
    settings: Settings, subject: str, scopes: frozenset[Scope], lifetime: timedelta
) -> str:
    """Sign a token."""
    if settings.jwt_secret is None:
        name_new_ledger(settings)
    now = datetime.fromtimestamp(time.time(), UTC)
    return tokens_of(settings).issue(subject, scopes, now=now, lifetime=lifetime)

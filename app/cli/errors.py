"""What a command says when it can't go on: one line for a person, no traceback."""

import socket

import asyncpg
from sqlalchemy.exc import DBAPIError

from app.database import DatabaseUnavailableError, UnsupportedServerError
from app.embedded import EmbeddedPostgresError
from app.settings import SettingsError


class CommandError(Exception):
    """A command can't do what it was asked to; the message says why and what helps."""


EXPECTED = (CommandError, SettingsError, EmbeddedPostgresError, UnsupportedServerError)
"""Failures whose message is meant for whoever ran the command."""


def database_trouble(error: Exception) -> CommandError:
    """Say what stands between a command and its database, without the address, which may hold a password."""
    cause: BaseException | None = error
    if isinstance(error, DatabaseUnavailableError):
        cause = error.__cause__
    if isinstance(cause, DBAPIError):
        cause = cause.orig
    if isinstance(cause, OSError):
        reason = _unreachable(cause)
    else:
        reason = str(cause).partition("\n")[0] or type(cause).__name__
    return CommandError(f"The database can't be used: {reason}")


def _unreachable(error: OSError) -> str:
    match error:
        case ConnectionRefusedError():
            return "nothing accepts connections at its address."
        case TimeoutError():
            return "it doesn't answer in time."
        case socket.gaierror():
            return "its host isn't known by that name."
        case _:
            return f"{error.strerror or 'it is out of reach'}."


DATABASE_TROUBLE = (DatabaseUnavailableError, DBAPIError, asyncpg.PostgresError, OSError)
"""What reaching a database raises; `database_trouble` puts it into words."""

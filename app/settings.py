"""The settings of a process: read once from `SALDO_*` variables, checked, then never changed.

This module is the only reader of the environment. Everything else is handed values, so that a test or a second server in
the same process needs no variable. A wrong value and an unknown `SALDO_*` name are both refused: a setting with a typing
error that is silently ignored would be found in production.
"""

import difflib
import os
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX: Final = "SALDO_"

_JWT_SECRET_BYTES: Final = 32
"""HMAC-SHA-256 is no stronger than its key; RFC 7518 section 3.2 asks for one as long as the hash."""

_DATABASE_SCHEMES: Final = frozenset({"postgresql", "postgres"})
_BROADCAST_SCHEMES: Final = _DATABASE_SCHEMES | {"redis", "rediss", "memory"}

_CLOSE: Final = 0.7
"""How alike two names must be, of 1, for the one to be a typing error of the other."""

_REASONS: Final = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""What is said of a wrong value, by pydantic's name for the error, where its own sentence speaks of the parser."""


class SettingsError(Exception):
    """One or more variables are wrong or unknown; the message has a line for each and shows no value."""


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise ValueError("is not a URL") from None


def _require_scheme(url: str, schemes: frozenset[str]) -> None:
    if _split(url).scheme not in schemes or "://" not in url:
        expected = ", ".join(sorted(f"{scheme}://" for scheme in schemes))
        raise ValueError(f"must begin with one of {expected}")


def _check_database_url(url: str) -> str:
    _require_scheme(url, _DATABASE_SCHEMES)
    return url


def _check_broadcast_url(url: str) -> str:
    _require_scheme(url, _BROADCAST_SCHEMES)
    return url


def _check_jwt_secret(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value().encode()) < _JWT_SECRET_BYTES:
        raise ValueError(f"must have at least {_JWT_SECRET_BYTES} bytes")
    return secret


# A URL may hold a password, so fields of these two types are left out of the repr.
DatabaseUrl = Annotated[str, AfterValidator(_check_database_url)]
BroadcastUrl = Annotated[str, AfterValidator(_check_broadcast_url)]
JwtSecret = Annotated[SecretStr, AfterValidator(_check_jwt_secret)]
Milliseconds = Annotated[int, Field(ge=1, le=600_000)]
Interval = Annotated[float, Field(ge=0.1, le=86_400, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Every setting with its default. `load_settings` builds it; the documentation's table is made from it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    database_url: DatabaseUrl | None = Field(
        default=None,
        repr=False,
        description="PostgreSQL that holds the ledger. Unset: an embedded PostgreSQL below the data directory.",
    )
    owner_database_url: DatabaseUrl | None = Field(
        default=None,
        repr=False,
        description="The same database as the owner of the schema, for migrations. Unset: the database URL.",
    )
    data_dir: Path = Field(
        default=Path(".saldo"),
        description="Directory of the embedded PostgreSQL and of the generated token secret.",
    )
    broadcast_url: BroadcastUrl | None = Field(
        default=None,
        repr=False,
        description="Wake-up path between processes: postgresql://, redis://, rediss:// or memory://. "
        "Unset: the ledger's own database.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65_535, description="TCP port; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=256, description="Server processes.")
    relay: Literal["inside", "off"] = Field(
        default="inside",
        description="Whether `saldo serve` also delivers events; off where `saldo relay` does it.",
    )
    pool_size: int = Field(
        default=10, ge=1, le=1_000, description="Database connections for reading, per process."
    )
    pool_timeout_ms: Milliseconds = Field(
        default=500, description="Longest wait for a database connection, in milliseconds."
    )
    posting_batch_max: int = Field(
        default=256, ge=1, le=10_000, description="Most postings in one database transaction."
    )
    posting_in_flight: int = Field(
        default=2, ge=1, le=64, description="Posting transactions under way at once, per process."
    )
    posting_queue_max: int = Field(
        default=5_000,
        ge=1,
        le=1_000_000,
        description="Postings that may wait, per process; the next one is refused as UNAVAILABLE.",
    )
    posting_deadline_ms: Milliseconds = Field(
        default=500,
        description="Longest wait of a posting for its database transaction, in milliseconds.",
    )
    statement_timeout_ms: Milliseconds = Field(
        default=5_000, description="Longest run of one SQL statement, in milliseconds."
    )
    hold_expiry_seconds: Interval = Field(
        default=1.0,
        description="How often a server releases the holds whose time is over, in seconds.",
    )
    sweep_seconds: Interval = Field(
        default=60.0,
        description="How often a server looks for striped accounts that are due for a sweep, in seconds.",
    )
    snapshot_seconds: Interval = Field(
        default=60.0,
        description="How often a server looks for derived accounts that are due for a snapshot, in seconds.",
    )
    jwt_secret: JwtSecret | None = Field(
        default=None,
        description="Key of the tokens (HS256), at least 32 bytes. Unset: generated and kept in the data directory.",
    )
    jwt_issuer: str | None = Field(default=None, description="Issuer that a token must name.")
    jwt_audience: str | None = Field(default=None, description="Audience that a token must name.")
    graphiql: bool = Field(default=True, description="Serve the GraphiQL page to browsers.")
    introspection: bool = Field(default=True, description="Answer introspection queries.")
    body_limit_bytes: int = Field(
        # A transferBatch of 1,000 transfers, each with up to 4 kB of amounts, keys, text and metadata, must fit.
        default=4_194_304,
        ge=1_024,
        description="Largest request body, in bytes; room for a batch of 1,000 transfers of 4 kB each.",
    )
    max_sockets_per_process: int = Field(
        default=5_000, ge=1, description="Open WebSockets per process; the next one is refused."
    )
    max_subscriptions_per_socket: int = Field(
        default=50, ge=1, description="Live subscriptions on one WebSocket."
    )
    subscription_poll_seconds: float = Field(
        default=15.0,
        gt=0,
        allow_inf_nan=False,
        description="How often a live feed looks at the database although nothing woke it, in seconds.",
    )
    shutdown_grace_seconds: float = Field(
        default=10.0,
        ge=0,
        allow_inf_nan=False,
        description="How long requests under way may take to finish at shutdown, in seconds.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse combinations whose members are each fine: what wakes one process only can't serve several."""
        memory_only = self.broadcast_url is not None and self.broadcast_url.startswith("memory:")
        if memory_only and self.workers > 1:
            raise ValueError(
                "SALDO_BROADCAST_URL: memory:// reaches one process, SALDO_WORKERS asks for more"
            )
        if self.owner_database_url is not None and self.database_url is None:
            raise ValueError("SALDO_OWNER_DATABASE_URL: is of no use without SALDO_DATABASE_URL")
        return self

    @property
    def migration_database_url(self) -> str | None:
        """Where migrations run: as the owner where one is named; None stands for the embedded PostgreSQL."""
        return self.owner_database_url or self.database_url


def load_settings() -> Settings:
    """Read the environment; raises SettingsError that names every variable that is wrong or unknown."""
    known = {variable_name(field) for field in Settings.model_fields}
    problems = [
        _unknown(name)
        for name in sorted(os.environ)
        if name.upper().startswith(PREFIX) and name.upper() not in known
    ]
    try:
        settings = Settings()
    except ValidationError as error:
        problems += [describe_problem(detail) for detail in error.errors(include_url=False)]
    else:
        if not problems:
            return settings
    # The cause would show the refused values, secrets among them.
    raise SettingsError("\n".join(problems)) from None


def variable_name(field: str) -> str:
    """Name the environment variable of a field of Settings."""
    return PREFIX + field.upper()


def describe_problem(detail: ErrorDetails) -> str:
    """Say what is wrong with which variable, without its value."""
    reason = _REASONS.get(detail["type"]) or (
        detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    )
    return f"{variable_name(str(detail['loc'][0]))}: {reason}" if detail["loc"] else reason


def settings_table() -> str:
    """Write the table of all settings in Markdown, for the documentation."""
    rows = ["| Variable | Default | Meaning |", "| --- | --- | --- |"]
    for field, info in Settings.model_fields.items():
        default = "" if info.default is None else f"`{info.default}`".replace("True", "true")
        rows.append(f"| `{variable_name(field)}` | {default} | {info.description} |")
    return "\n".join(rows) + "\n"


def _unknown(name: str) -> str:
    # Without the prefix, which would make any two names alike.
    wanted, fields = name[len(PREFIX) :].lower(), list(Settings.model_fields)
    nearest = difflib.get_close_matches(wanted, fields, n=1, cutoff=_CLOSE)
    hint = (
        f"did you mean {variable_name(nearest[0])}?"
        if nearest
        else "docs/operations.md lists those there are."
    )
    return f"{name}: there is no such setting; {hint}"

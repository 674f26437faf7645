"""How the process writes its log: one line for each event on standard error, JSON unless a person watches.

What a log may hold. No token, no amount and no idempotency key is ever logged by name. They could still slip in through an
exception of the database, whose text quotes statements, parameters and rows; so of such an exception only its kind, its
SQLSTATE and the constraint are written.
"""

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final, Literal, cast

import asyncpg
import orjson
import structlog
from sqlalchemy.exc import StatementError
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

LogLevel = Literal["debug", "info", "warning", "error"]

_CHATTY: Final = ("asyncio", "websockets", "httpx", "httpcore", "alembic")
"""Libraries whose finer messages quote frames and addresses, or say nothing to whoever runs Saldo."""

_QUOTES_ROWS: Final = (StatementError, asyncpg.PostgresError)
"""Exceptions whose text quotes statements, parameters and rows."""


def configure_logging(level: LogLevel) -> None:
    """Send what Saldo and its libraries log to standard error; call it once, at the start of a process."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        _describe_exception,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    # It reports each start and stop in five lines of its own, which ours say in one.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def _renderer() -> Processor:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer(serializer=_encode)


def _encode(event: EventDict, **_options: object) -> str:
    return orjson.dumps(event, default=str).decode()


def _describe_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the exception of an event by a text that quotes nothing of the database."""
    found: ExcInfo | BaseException | bool | None = event.pop("exc_info", None)
    match found:
        case BaseException() as exception:
            pass
        case (_, BaseException() as exception, _):
            pass
        case True:
            exception = sys.exception()
        case _:
            exception = None
    if exception is not None:
        event["exception"] = "".join(describe_exception(exception))
    return event


def describe_exception(exception: BaseException) -> Iterator[str]:
    """Write an exception as Python does, causes first, without what the database's exceptions quote."""
    cause = exception.__cause__ or (
        None if exception.__suppress_context__ else exception.__context__
    )
    if cause is not None:
        yield from describe_exception(cause)
        yield "\nwhich led to:\n\n"
    yield from traceback.format_tb(exception.__traceback__)
    yield f"{type(exception).__qualname__}: {_text(exception)}\n"
    if isinstance(exception, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exception)
        for member in group.exceptions:
            yield "\none of the group:\n\n"
            yield from describe_exception(member)


def _text(exception: BaseException) -> str:
    if not isinstance(exception, _QUOTES_ROWS):
        return str(exception)
    origin: Any = exception.orig if isinstance(exception, StatementError) else exception
    sqlstate = getattr(origin, "sqlstate", None)
    constraint = getattr(getattr(origin, "__cause__", None) or origin, "constraint_name", None)
    return f"SQLSTATE {sqlstate}, constraint {constraint}"

"""The relay's statements, one function each; `_in_tx` marks those that need an open transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.relay.messages import UNTOLD, PositionedEvent

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "relay.sql")

_COUNT_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in the outbox."""

    pending: int
    """Events, counted up to 100,000."""
    oldest_seconds: float
    notification_queue_usage: float
    """How full the server's notification queue is, from 0 to 1, where 1 makes notifying fail."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events of the log after a position, in order, and the position that the lane had reached when they were read."""

    lane_position: int
    events: Sequence[PositionedEvent]


@dataclass(frozen=True, slots=True)
class Claim:
    """Events that have just got their positions, in order."""

    events: Sequence[PositionedEvent]
    last_id: int
    """The highest id that they had in the outbox; 0 where there are none."""


NO_CLAIM: Final = Claim((), 0)


async def outbox_has_events(connection: AsyncConnection, floor: int) -> bool:
    """Tell whether any committed event waits for its position; none has an id up to `floor`."""
    return bool(
        (await connection.execute(_SQL["outbox_has_events"], {"floor": floor})).scalar_one()
    )


async def outbox_writers(connection: AsyncConnection) -> frozenset[str]:
    """Name the transactions under way that have written to the outbox or are about to."""
    return frozenset((await connection.execute(_SQL["outbox_writers"])).scalars())


async def first_outbox_id(connection: AsyncConnection, floor: int) -> int | None:
    """Return the lowest id in the outbox above `floor`."""
    return (
        await connection.execute(_SQL["first_outbox_id"], {"floor": floor})
    ).scalar_one_or_none()


async def lock_lane_in_tx(connection: AsyncConnection) -> int | None:
    """Become the relay that delivers until the transaction ends, and return the last position given.

    None means that another relay is the one.
    """
    return (await connection.execute(_SQL["lock_lane"])).scalar_one_or_none()


async def claim_events_in_tx(
    connection: AsyncConnection, position: int, floor: int, batch_max: int
) -> Claim:
    """Move the next events from the outbox to the log, behind `position`, the one that locking the lane returned."""
    parameters = {"position": position, "floor": floor, "batch_max": batch_max}
    rows = (await connection.execute(_SQL["claim_events"], parameters)).all()
    if not rows:
        return NO_CLAIM
    return Claim(
        [_event_of(row.position, row.account_ids, row.sequences) for row in rows], rows[0].last_id
    )


async def discard_repeated_events_in_tx(connection: AsyncConnection) -> Sequence[UUID]:
    """Take out of the outbox what was delivered or stands there before, and return whose events they were."""
    return (await connection.execute(_SQL["discard_repeated_events"])).scalars().all()


async def measure_backlog(connection: AsyncConnection, floor: int) -> Backlog:
    """Look how much waits and for how long."""
    parameters = {"floor": floor, "count_max": _COUNT_MAX}
    row = (await connection.execute(_SQL["measure_backlog"], parameters)).one()
    return Backlog(row.pending, float(row.oldest_seconds), row.notification_queue_usage)


async def read_log(connection: AsyncConnection, after: int, page: int) -> LogPage:
    """Read at most a page of events after a position."""
    rows = (await connection.execute(_SQL["read_log"], {"after": after, "page": page})).all()
    return LogPage(rows[0].lane_position, [event for row in rows for event in _events_in(row)])


def _events_in(row: Row[Any]) -> Iterable[PositionedEvent]:
    return (
        () if row.position is None else (_event_of(row.position, row.account_ids, row.sequences),)
    )


def _event_of(
    position: int, account_ids: Sequence[UUID | None], sequences: Sequence[int | None]
) -> PositionedEvent:
    """Read an event; arrays that were written by hand may have holes or different lengths, and stop nobody else's."""
    padded = [*sequences, *[UNTOLD] * (len(account_ids) - len(sequences))]
    return PositionedEvent(
        position,
        {
            account_id: sequence or UNTOLD
            for account_id, sequence in zip(account_ids, padded, strict=False)
            if account_id is not None
        },
    )

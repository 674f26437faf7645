"""What travels over Broadcaster: which positions the log has reached, and which accounts moved there.

A message is at most 7,500 bytes, because PostgreSQL refuses to notify of 8,000. That is kept by counting accounts: one
takes at most 55 bytes, so that no text needs to be measured. Events are packed together while they fit; one event that
touches more accounts than fit travels as its position alone, and the hub reads the rest from the log.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import orjson

EVENTS_CHANNEL: Final = "saldo_events"
DOORBELL_CHANNEL: Final = "saldo_doorbell"

RESYNC: Final = "resync"
"""The message that a backend gives to its own process after a time in which it may have missed others."""

ACCOUNTS_MAX: Final = 130

UNTOLD: Final = 0
"""In the place of a sequence: the account changed in a way that its sequence doesn't show."""


@dataclass(frozen=True, slots=True)
class PositionedEvent:
    """A transaction's place in the log, and the sequence that each touched account reached by it, or UNTOLD."""

    position: int
    reached: Mapping[UUID, int]


@dataclass(frozen=True, slots=True)
class WakeUp:
    """The log has grown by the positions from `first` to `last`; `reached` is None where it didn't fit."""

    first: int
    last: int
    reached: Mapping[UUID, int] | None


@dataclass(frozen=True, slots=True)
class Resync:
    """Others may have spoken and this process did not hear."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Somebody spoke a language that this release doesn't know."""


Message: TypeAlias = WakeUp | Resync | Unreadable


def pack(events: Iterable[PositionedEvent]) -> Iterator[WakeUp]:
    """Join events that follow each other into as few wake-ups as hold them; events come in order of position."""
    draft: WakeUp | None = None
    for event in events:
        joined = _join(draft, event)
        if joined is None and draft is not None:
            yield draft
        draft = joined or _alone(event)
    if draft is not None:
        yield draft


def encode(wake_up: WakeUp) -> str:
    """Write a wake-up as ASCII text."""
    reached = wake_up.reached
    fields = {
        "first": wake_up.first,
        "last": wake_up.last,
        "reached": None
        if reached is None
        else {account_id.hex: sequence for account_id, sequence in reached.items()},
    }
    return orjson.dumps(fields).decode()


def decode(text: str) -> Message:
    """Read a message; what can't be read is a value too, because it may come from a newer release."""
    if text == RESYNC:
        return Resync()
    try:
        fields = cast("dict[str, Any]", orjson.loads(text))
        reached = cast("dict[str, Any] | None", fields["reached"])
        return WakeUp(
            int(fields["first"]),
            int(fields["last"]),
            None
            if reached is None
            else {UUID(account): int(sequence) for account, sequence in reached.items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return Unreadable()


def merge_sequences(one: int, other: int) -> int:
    """Say of two changes of an account what it has reached; UNTOLD stays, or its change would go unseen."""
    return UNTOLD if UNTOLD in {one, other} else max(one, other)


def _join(draft: WakeUp | None, event: PositionedEvent) -> WakeUp | None:
    if draft is None or draft.reached is None or event.position != draft.last + 1:
        return None
    merged = dict(draft.reached)
    for account_id, sequence in event.reached.items():
        merged[account_id] = merge_sequences(merged.get(account_id, sequence), sequence)
    return WakeUp(draft.first, event.position, merged) if len(merged) <= ACCOUNTS_MAX else None


def _alone(event: PositionedEvent) -> WakeUp:
    fits = len(event.reached) <= ACCOUNTS_MAX
    return WakeUp(event.position, event.position, event.reached if fits else None)

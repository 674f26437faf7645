"""Live feeds: everything an account books, in order; and what accounts have, as it changes.

Both register with the hub before they first read, so that nothing can happen between reading and listening unheard. Both
read from the tables and take nothing from a message. While they wait they hold no connection; while they read they take
turns with other feeds (`Hub.reading`). A database that is away delays a feed and doesn't end it. They end when their
consumer closes them, and all that they have to clean up is synchronous.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar
from uuid import UUID

from app.relay.hub import Hub
from app.relay.retry import Backoff, database_is_away, jittered

POLL_SECONDS: Final = 15.0

_READ_SECONDS: Final = 15.0
"""Longer than the database's own limits; a reading that is never answered must not keep the turn of all others."""


class Sequenced(Protocol):
    """Something of one account that has its place there: an entry, or a state after an entry."""

    @property
    def sequence(self) -> int:
        """Number of the account's last entry that this shows."""
        ...


EntryT = TypeVar("EntryT", bound=Sequenced)
StateT = TypeVar("StateT", bound=Sequenced)
Result = TypeVar("Result")


async def follow_entries(
    hub: Hub,
    read_after: Callable[[UUID, int, int], Awaitable[Sequence[EntryT]]],
    account_id: UUID,
    after_sequence: int,
    *,
    page: int = 100,
    poll_seconds: float = POLL_SECONDS,
) -> AsyncGenerator[EntryT]:
    """Yield every entry of the account after a sequence, once and in order: first what is there, then what comes.

    `read_after(account_id, sequence, limit)` returns the account's next entries in order, and gives its connection back
    before it returns. A slow consumer costs memory for one page.
    """
    watch = hub.watch((account_id,))
    try:
        while True:
            entries = await _read(hub, partial(read_after, account_id, after_sequence, page))
            if entries:
                watch.seen(account_id, entries[-1].sequence)
            for entry in entries:
                after_sequence = entry.sequence
                yield entry
            if len(entries) < page:
                await watch.changed(jittered(poll_seconds))
    finally:
        watch.close()


async def follow_balances(
    hub: Hub,
    read_now: Callable[[Collection[UUID]], Awaitable[Mapping[UUID, StateT]]],
    account_ids: Collection[UUID],
    *,
    poll_seconds: float = POLL_SECONDS,
) -> AsyncGenerator[StateT]:
    """Yield the state of each account, then each newer state, leaving out those that a slow consumer has no time for.

    `read_now(account_ids)` returns the newest committed states, and gives its connection back before it returns; an
    account that it leaves out is passed over. A state is yielded if it differs from the one yielded before, in whatever:
    the sequence alone won't do, because money that is captured out of a hold changes what is held and not the sequence,
    and so do postings on the stripes of a hot account.

    What was read together with a state that the consumer took long to deal with may be out of date by then. So an account
    that has moved meanwhile is left for the next reading; it comes first there, and whatever is first is always yielded.
    """
    watch = hub.watch(account_ids)
    known: dict[UUID, StateT] = {}
    due = list(dict.fromkeys(account_ids))
    try:
        while True:
            states = await _read(hub, partial(read_now, due))
            for account_id, state in states.items():
                watch.seen(account_id, state.sequence)
            late: list[UUID] = []
            fresh = True
            for account_id in due:
                state = states.get(account_id)
                if not fresh and watch.has_moved(account_id):
                    late.append(account_id)
                elif state is not None and state != known.get(account_id):
                    known[account_id] = state
                    yield state
                    fresh = False
            due = list(dict.fromkeys((*late, *watch.take())))
            if not due:
                due = list(await watch.changed(jittered(poll_seconds))) or list(
                    dict.fromkeys(account_ids)
                )
    finally:
        watch.close()


async def _read(hub: Hub, read: Callable[[], Awaitable[Result]]) -> Result:
    """Read when it is this feed's turn; where the database is away, again and again until it is back."""
    backoff = Backoff()
    while True:
        try:
            async with hub.reading, asyncio.timeout(_READ_SECONDS):
                return await read()
        except Exception as error:
            if not database_is_away(error):
                raise
        await backoff.pause()

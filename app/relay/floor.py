"""How deep a relay has to look into the outbox: the id up to which nothing is left and nothing can come any more.

What was delivered leaves the outbox, but PostgreSQL can't remove a deleted row while any session of the database has a
snapshot from before; behind a report of an hour the next event would be looked for past millions of dead rows. The floor
spares that. It is never needed for being right: a relay begins with none and looks everywhere.

Why it is safe. An insert locks the table in ROW EXCLUSIVE mode until its transaction ends, and does so before it takes an
id. Ids are taken in ascending order. So when id L has been seen, every transaction that has taken a lower one has ended or
still holds that lock. Once all who held it have ended too, whatever they wrote up to L is in the table for every new
snapshot, and no one will add to it. Only those who write to the outbox can delay this, not whoever else is at work in the
database.

One thing breaks it: a standby that is promoted without the last of the log may give ids again. So a floor lasts a minute
and no longer than a connection, and the next one is learnt from nothing.
"""

import asyncio
from typing import Final

from app.database import Database
from app.relay import store

_STEP: Final = 5_000
"""Ids; to raise the floor by less isn't worth the look at the server's locks."""

_LIFE_SECONDS: Final = 60.0


class Floor:
    """The floor of one relay; `id` may be used at any time."""

    def __init__(self, database: Database) -> None:
        """Begin with no floor."""
        self._database = database
        self.id = 0
        """No event in the outbox has this id or a lower one."""
        self._since = 0.0
        """When all was forgotten last, by the loop's clock."""
        self._highest_seen = 0
        self._next = 0
        """What the floor will be raised to once `_writers` have ended."""
        self._writers: frozenset[str] | None = None

    def fall(self) -> None:
        """Know nothing any more."""
        self.id = self._highest_seen = self._next = 0
        self._writers = None
        self._since = asyncio.get_running_loop().time()

    def has_seen(self, outbox_id: int) -> None:
        """Say that an event with this id was committed."""
        self._highest_seen = max(self._highest_seen, outbox_id)

    async def rise(self) -> None:
        """Take the next step where one is due: note who is writing, or raise the floor once they all have ended."""
        if asyncio.get_running_loop().time() - self._since > _LIFE_SECONDS:
            self.fall()
        if self._writers is None and self._highest_seen < self.id + _STEP:
            return
        since, highest_seen = self._since, self._highest_seen
        async with self._database.read_only() as connection:
            writers = await store.outbox_writers(connection)
            first_left = await store.first_outbox_id(connection, self.id)
        if since != self._since:
            return
        if self._writers is None:
            self._next, self._writers = highest_seen, writers
        elif not writers & self._writers:
            self.id = self._next if first_left is None else min(self._next, first_left - 1)
            self._writers = None

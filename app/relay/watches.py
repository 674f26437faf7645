"""Who wants to know when which account moves: a registry that is told, and watches that are read.

Cost. A watch takes memory for its accounts and no more, however much happens and however seldom it is read: what it
keeps is which of its accounts moved, not how often. It holds no connection and no task. All but `changed` is
synchronous, so that a generator's `finally` can close its watch in whatever way the generator ends.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from app.relay.messages import UNTOLD, merge_sequences


class Watch:
    """The accounts that one reader watches, and which of them moved since it last looked; one task may wait on it."""

    __slots__ = ("_accounts", "_closed", "_moved", "_registry", "_seen", "_stirred")

    def __init__(self, registry: "Watches", account_ids: Iterable[UUID]) -> None:
        """Use `Watches.add` instead, which also registers it."""
        self._registry = registry
        self._accounts: Final = frozenset(account_ids)
        self._moved: dict[UUID, int] = {}
        """The sequence that each account which moved has reached, or UNTOLD; what moved first stands first."""
        self._seen: dict[UUID, int] = {}
        self._stirred = asyncio.Event()
        self._closed = False

    @property
    def account_ids(self) -> frozenset[UUID]:
        """The accounts that are watched."""
        return self._accounts

    async def changed(self, timeout_seconds: float) -> frozenset[UUID]:
        """Wait until an account has moved and return all that did since the last call; empty on timeout or closing."""
        if not self._moved and not self._closed:
            self._stirred.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    await self._stirred.wait()
        return frozenset(self.take())

    def take(self) -> list[UUID]:
        """Return the accounts that moved since the last call, the earliest first, without waiting."""
        moved = list(self._moved)
        self._moved.clear()
        return moved

    def has_moved(self, account_id: UUID) -> bool:
        """Tell whether the account moved since the last look, without counting as one."""
        return account_id in self._moved

    def seen(self, account_id: UUID, sequence: int) -> None:
        """Say that the reader knows the account up to this sequence, so that news of it is none any more.

        Changes that a sequence doesn't show are told all the same.
        """
        self._seen[account_id] = sequence
        if UNTOLD < self._moved.get(account_id, UNTOLD) <= sequence:
            del self._moved[account_id]

    def close(self) -> None:
        """Stop watching; whoever waits gets an empty answer. Closing again does nothing."""
        self._registry.remove(self)
        self._moved.clear()
        self._closed = True
        self._stirred.set()

    def tell(self, account_id: UUID, sequence: int) -> None:
        """Note that the account has reached the sequence, or UNTOLD."""
        if sequence == UNTOLD or sequence > self._seen.get(account_id, UNTOLD):
            self._moved[account_id] = merge_sequences(
                self._moved.get(account_id, sequence), sequence
            )
            self._stirred.set()

    def tell_doubt(self) -> None:
        """Note that any of the accounts may have moved."""
        self._moved.update(dict.fromkeys(self._accounts, UNTOLD))
        self._stirred.set()


class Watches:
    """All open watches of a process, by account."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_account: dict[UUID, set[Watch]] = {}

    def __len__(self) -> int:
        """Count the accounts that anybody watches."""
        return len(self._by_account)

    def add(self, account_ids: Iterable[UUID]) -> Watch:
        """Open a watch; what moves from now on is told to it."""
        watch = Watch(self, account_ids)
        for account_id in watch.account_ids:
            self._by_account.setdefault(account_id, set()).add(watch)
        return watch

    def remove(self, watch: Watch) -> None:
        """Forget a watch, and the accounts that nobody else watches."""
        for account_id in watch.account_ids:
            watching = self._by_account.get(account_id)
            if watching is not None:
                watching.discard(watch)
                if not watching:
                    del self._by_account[account_id]

    def tell(self, account_id: UUID, sequence: int) -> None:
        """Tell those who watch the account how far it has come."""
        for watch in self._by_account.get(account_id, ()):
            watch.tell(account_id, sequence)

    def tell_doubt(self) -> None:
        """Tell every watch that any of its accounts may have moved."""
        for watch in {watch for watching in self._by_account.values() for watch in watching}:
            watch.tell_doubt()

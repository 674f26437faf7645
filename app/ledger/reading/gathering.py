"""Calls that each ask for one thing, answered together: as many as have gathered while the last reading was under way.

There is no timer: a call that comes alone is answered at once. An answer is as fresh as one that the caller had read by
itself, because its reading begins after the call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class Gatherer(Generic[Key, Answer]):
    """Turns many calls for one key each into few readings of many keys, one reading at a time."""

    def __init__(self, read: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Answer]]]) -> None:
        """`read` answers distinct keys; those that name nothing are missing in what it returns."""
        self._read = read
        self._waiting: dict[Key, asyncio.Future[Answer | None]] = {}
        self._work: asyncio.Future[None] | None = None

    async def get(self, key: Key) -> Answer | None:
        """Read what the key names; None where that is nothing. Raises what the reading raises."""
        promise = self._waiting.get(key)
        if promise is None:
            promise = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._work is None:
            # No caller's own task reads: whoever is cancelled would take the answers of the others along.
            self._work = asyncio.ensure_future(self._answer_all())
        return await asyncio.shield(promise)

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                await self._answer(asked)
        finally:
            self._work = None

    async def _answer(self, asked: Mapping[Key, "asyncio.Future[Answer | None]"]) -> None:
        try:
            answers = await self._read(list(asked))
        except Exception as error:  # noqa: BLE001 - it is for the callers to judge, each of which gets it
            for promise in asked.values():
                promise.set_exception(error)
                # Asked for here, so that it doesn't count as unseen where all who wanted it have gone.
                promise.exception()
        except BaseException:
            for promise in asked.values():
                promise.cancel()
            raise
        else:
            for key, promise in asked.items():
                promise.set_result(answers.get(key))

"""The reads of one operation: gathered where fields ask for the same kind of thing, and one at a time.

GraphQL resolves sibling fields at the same time, so a query could want fifty connections at once, and ten such queries
would each wait for connections that the others hold. Here an operation never has more than one.

Nothing is kept: the second field of a mutation must see what the first one has done, and each event of a subscription
what has changed since the one before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from strawberry.dataloader import DataLoader

from app.ledger import model
from app.ledger.model import Caller
from app.ledger.reader import Reader

Answer = TypeVar("Answer")


class Reads:
    """What fields read from the ledger in one operation of one caller."""

    def __init__(self, reader: Reader, caller: Caller) -> None:
        """Read nothing yet."""
        self._reader = reader
        self._caller = caller
        self._turn = asyncio.Lock()
        self.accounts: DataLoader[UUID, model.Account | None] = DataLoader(
            self._accounts, cache=False
        )
        self.transactions: DataLoader[UUID, model.Transaction | None] = DataLoader(
            self._transactions, cache=False
        )
        self.entries: DataLoader[tuple[UUID, int], model.Entry | None] = DataLoader(
            self._entries, cache=False
        )
        self.balances: DataLoader[UUID, model.Balance] = DataLoader(self._balances, cache=False)
        self.balances_at: DataLoader[tuple[UUID, datetime], int] = DataLoader(
            self._balances_at, cache=False
        )
        self.reversals: DataLoader[UUID, tuple[UUID, ...]] = DataLoader(
            self._reversals, cache=False
        )
        self.holds: DataLoader[UUID, model.Hold | None] = DataLoader(self._holds, cache=False)
        self.accounts_of_holds: DataLoader[UUID, model.Account] = DataLoader(
            self._accounts_of_holds, cache=False
        )
        self.transactions_of_holds: DataLoader[UUID, tuple[model.Transaction, ...]] = DataLoader(
            self._transactions_of_holds, cache=False
        )

    async def once(self, read: Callable[[Reader], Awaitable[Answer]]) -> Answer:
        """Read something by itself, when no other read of this operation is under way."""
        async with self._turn:
            return await read(self._reader)

    async def _accounts(self, keys: list[UUID]) -> Sequence[model.Account | None]:
        found = await self.once(lambda reader: reader.accounts(self._caller, _distinct(keys)))
        return [found.get(key) for key in keys]

    async def _transactions(self, keys: list[UUID]) -> Sequence[model.Transaction | None]:
        found = await self.once(lambda reader: reader.transactions(self._caller, _distinct(keys)))
        return [found.get(key) for key in keys]

    async def _entries(self, keys: list[tuple[UUID, int]]) -> Sequence[model.Entry | None]:
        found: dict[tuple[UUID, int], model.Entry | None] = dict.fromkeys(keys)
        for account_id, sequence in found:
            found[account_id, sequence] = await self.once(
                lambda reader, account_id=account_id, sequence=sequence: reader.entry(
                    self._caller, account_id, sequence
                )
            )
        return [found[key] for key in keys]

    async def _balances(self, keys: list[UUID]) -> Sequence[model.Balance]:
        found = await self.once(lambda reader: reader.balances(_distinct(keys)))
        return [found[key] for key in keys]

    async def _balances_at(self, keys: list[tuple[UUID, datetime]]) -> Sequence[int]:
        found: dict[tuple[UUID, datetime], int] = {}
        for at in dict.fromkeys(at for _, at in keys):
            ids = _distinct([account_id for account_id, asked_at in keys if asked_at == at])
            read = await self.once(lambda reader, ids=ids, at=at: reader.balances_at(ids, at))
            found.update({(account_id, at): posted for account_id, posted in read.items()})
        return [found[key] for key in keys]

    async def _reversals(self, keys: list[UUID]) -> Sequence[tuple[UUID, ...]]:
        found = await self.once(lambda reader: reader.reversals(_distinct(keys)))
        return [found.get(key, ()) for key in keys]

    async def _holds(self, keys: list[UUID]) -> Sequence[model.Hold | None]:
        found = await self.once(lambda reader: reader.holds(self._caller, _distinct(keys)))
        return [found.get(key) for key in keys]

    async def _accounts_of_holds(self, keys: list[UUID]) -> Sequence[model.Account]:
        found = await self.once(lambda reader: reader.accounts_of_holds(_distinct(keys)))
        return [found[key] for key in keys]

    async def _transactions_of_holds(
        self, keys: list[UUID]
    ) -> Sequence[tuple[model.Transaction, ...]]:
        found = await self.once(
            lambda reader: reader.transactions_of_holds(self._caller, _distinct(keys))
        )
        return [found[key] for key in keys]


def _distinct(keys: Sequence[UUID]) -> list[UUID]:
    return list(dict.fromkeys(keys))

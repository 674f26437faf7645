"""What subscribers see: every entry of every account, and all balances, for as long as the story lasts."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from app.demo.cast import Cast, Story, Wallet
from app.demo.documents import BALANCE_CHANGED, ENTRY_POSTED
from app.demo.proofs import Line
from app.demo.screen import money

_LIVE_SECONDS: Final = 15.0
"""How long the subscribers may take to see what is already booked."""


@dataclass(slots=True)
class Seen:
    """What the subscriptions have delivered, and whose entries are shown on the screen as they come."""

    shown: Collection[Wallet] = ()
    lines: defaultdict[str, list[Line]] = field(default_factory=lambda: defaultdict(list[Line]))
    """The entries of each account, by its id."""
    sequences: dict[str, int] = field(default_factory=dict[str, int])
    """How many entries the last balance of each account covers, by its id."""
    arrival: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, account_id: str, line: Line) -> None:
        """Note an entry."""
        self.lines[account_id].append(line)
        self.arrival.set()

    def cover(self, account_id: str, sequence: int) -> None:
        """Note which entries a balance covers."""
        self.sequences[account_id] = sequence
        self.arrival.set()

    async def wait_for_entries(self, booked: Mapping[str, int]) -> None:
        """Give the subscribers time to see so many entries of each account."""
        await self._wait_until(
            lambda: all(
                len(self.lines[account_id]) >= entries
                and self.sequences.get(account_id, 0) >= entries
                for account_id, entries in booked.items()
            )
        )

    async def wait_for_transaction(self, transaction_id: str, wallets: Collection[Wallet]) -> None:
        """Give the subscribers time to see what a transaction did to these accounts."""
        await self._wait_until(
            lambda: all(
                any(line.transaction_id == transaction_id for line in self.lines[each.account_id])
                for each in wallets
            )
        )

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a while; whether the subscribers have seen everything is proved in the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIVE_SECONDS):
                while not condition():
                    self.arrival.clear()
                    await self.arrival.wait()


@asynccontextmanager
async def watching(story: Story, cast: Cast) -> AsyncGenerator[Seen]:
    """Subscribe to everything for as long as the block lasts, and show what is delivered."""
    seen = Seen()
    names = {wallet.account_id: wallet.name for wallet in cast.everybody}
    auditor = story.token("dashboard", ["AUDIT"])

    async def entries(wallet: Wallet) -> None:
        feed = story.api.live(wallet.token, ENTRY_POSTED, {"id": wallet.account_id})
        async for message in feed:
            seen.add(wallet.account_id, Line.of(message["entry"]))
            if wallet in seen.shown:
                story.screen.show_entry(wallet.name, message["entry"])

    async def balances() -> None:
        async for message in story.api.live(auditor, BALANCE_CHANGED, {"ids": [*names]}):
            name = names[message["account"]["id"]]
            story.screen.balances[name] = money(message["balance"]["available"])
            seen.cover(message["account"]["id"], int(message["balance"]["sequence"]))

    story.screen.balances.update(dict.fromkeys(names.values(), ""))
    async with asyncio.TaskGroup() as tasks:
        watchers = [tasks.create_task(entries(wallet)) for wallet in cast.everybody]
        watchers.append(tasks.create_task(balances()))
        yield seen
        for watcher in watchers:
            watcher.cancel()

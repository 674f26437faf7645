"""Histories of accounts as they may be shown: those of hot accounts as far as they are settled.

The entries of a hot account are committed in any order. A reader that went on from the newest it sees would miss one that
is numbered below and committed later. So a history ends before the first stamp that may still appear, and who asks for
it waits a little until all that was begun before is settled: the answer tells of everything that was booked before the
question, unless a posting is stuck. Nobody holds a connection while waiting.

What is settled never changes, so one page of it may be read by several statements.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from app.database import Database
from app.ledger import pages, reading
from app.ledger.model import Account, BalanceTracking, Entry
from app.ledger.pages import EntryFilter, Page, PageRequest
from app.ledger.reading import entries
from app.ledger.stamps import first_unsettled

PATIENCE_SECONDS: Final = 0.25
"""How long a reader waits for postings that are under way; most of them take a few milliseconds."""

_LOOK_SECONDS: Final = 0.005


async def entry_page(
    database: Database,
    account: Account,
    wanted: EntryFilter,
    page: PageRequest[int],
    *,
    newest_first: bool,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Page[Entry]:
    """Read a page of the account's history; the keys are sequences, in the order of the list."""
    if not account.hot:
        async with database.read_only() as connection:
            return await entries.entry_page(
                connection, account, wanted, page, newest_first=newest_first
            )
    end = await _settled_end(database, patience_seconds=patience_seconds)
    async with database.read_only() as connection:
        found = await entries.entry_page(
            connection, account, wanted, page, newest_first=newest_first, end=end
        )
        if account.tracking is BalanceTracking.DERIVED or not found.items:
            return found
        lines = found.items[::-1] if newest_first else found.items
        without_gaps = wanted == EntryFilter()
        stamps = [line.sequence for line in (lines[:1] if without_gaps else lines)]
        available = await entries.striped_balances(connection, account, stamps)
    lines = _running(lines, available)
    return replace(found, items=lines[::-1] if newest_first else lines)


async def count_entries(database: Database, account: Account, wanted: EntryFilter) -> int | None:
    """Count the account's entries; None where that would read more than pages.COUNT_BOUND rows."""
    if account.hot:
        end = await _settled_end(database)
        async with database.read_only() as connection:
            return await entries.count_entries(connection, account, wanted, end=end)
    async with database.read_only() as connection:
        # A sequence has no gaps, so its last number is the count.
        total = (await reading.balances(connection, [account.id]))[account.id].sequence
        if wanted == EntryFilter():
            return total
        if total > pages.COUNT_BOUND:
            return None
        return await entries.count_entries(connection, account, wanted)


async def highest_sequence(database: Database, account: Account) -> int:
    """Return a place in the account's history with all that was booked before now behind it, and what comes later ahead.

    Of a hot account it is a stamp that no entry needs to bear. What was booked but isn't settled lies ahead too.
    """
    if account.hot:
        return await _settled_end(database) - 1
    async with database.read_only() as connection:
        return (await reading.balances(connection, [account.id]))[account.id].sequence


async def entries_of_transactions(
    database: Database, ids: Sequence[UUID]
) -> Mapping[UUID, tuple[Entry, ...]]:
    """Read all lines of these transactions, in the order of their legs, as `with_balances` completes them."""
    async with database.read_only() as connection:
        found = await reading.entries_of_transactions(connection, ids)
    completed = iter(
        await with_balances(database, [line for lines in found.values() for line in lines])
    )
    return {
        transaction_id: tuple(next(completed) for _ in lines)
        for transaction_id, lines in found.items()
    }


async def with_balances(database: Database, lines: Sequence[Entry]) -> tuple[Entry, ...]:
    """Complete lines that were just written on stripes by what their account has available after them.

    A line that doesn't settle in time, because another posting is stuck, stays without.
    """
    stamps = [line.sequence for line in lines if _lacks_balance(line)]
    if not stamps:
        return tuple(lines)
    end = await _settled_end(database, beyond=max(stamps))
    return await _completed(database, lines, end)


def _running(lines: Sequence[Entry], available: Mapping[int, int]) -> tuple[Entry, ...]:
    """Complete the lines of one account, oldest first; a balance that isn't known follows from the line before."""
    completed: list[Entry] = []
    after = 0
    for line in lines:
        after = available.get(line.sequence, after + line.amount)
        completed.append(replace(line, balance_after=after))
    return tuple(completed)


async def _completed(database: Database, lines: Sequence[Entry], end: int) -> tuple[Entry, ...]:
    """Complete those of the lines on striped accounts that lie before the end of what is settled."""
    wanting = [line for line in lines if _lacks_balance(line) and line.sequence < end]
    if not wanting:
        return tuple(lines)
    available: dict[tuple[UUID, int], int] = {}
    async with database.read_only() as connection:
        for account in {line.account.id: line.account for line in wanting}.values():
            stamps = [line.sequence for line in wanting if line.account.id == account.id]
            found = await entries.striped_balances(connection, account, stamps)
            available.update({(account.id, stamp): after for stamp, after in found.items()})
    return tuple(
        replace(
            line, balance_after=available.get((line.account.id, line.sequence), line.balance_after)
        )
        for line in lines
    )


def _lacks_balance(line: Entry) -> bool:
    return line.balance_after is None and line.account.tracking is BalanceTracking.STRIPED


async def _settled_end(
    database: Database, *, beyond: int | None = None, patience_seconds: float = PATIENCE_SECONDS
) -> int:
    """Return the lowest stamp that may still appear, after waiting a little until that lies beyond a certain one.

    That is every stamp given out so far where none is named.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    while True:
        async with database.read_only() as connection:
            highest, settled = await entries.settled_stamp(connection)
        end = first_unsettled(settled)
        if beyond is None:
            beyond = first_unsettled(highest) - 1
        if end > beyond or loop.time() > deadline:
            return end
        await asyncio.sleep(_LOOK_SECONDS)

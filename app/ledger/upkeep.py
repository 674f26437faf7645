"""What the ledger does by itself and again and again: holds expire, stripes are swept, derived balances get snapshots.

Each piece of work has an identity of its own (the hold; the account and the period; the account and the entry), so any number
of processes may do it at the same time, and one that is killed in the middle leaves nothing half done. All instants are
those of the database's clock.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog

from app.database import Database, DatabaseUnavailableError, load_statements
from app.ledger.errors import (
    HoldNotOpen,
    LedgerIncidentError,
    LedgerUnavailableError,
    WithdrawalNotPending,
)
from app.ledger.movements.holds import expire_hold
from app.ledger.movements.sweeps import sweep_by_itself
from app.ledger.posting.changes import Posted
from app.ledger.posting.decision import Outcome, Refused, Replay
from app.ledger.posting.engine import PostingEngine
from app.ledger.reading.lookups import Lookups
from app.ledger.requests import PostingRequest
from app.ledger.stamps import first_unsettled

log = structlog.get_logger(__name__)

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "upkeep.sql")

_AT_ONCE: Final = 128
"""How many postings of the upkeep's wait for the engine at a time, beside everybody else's."""

_LONGEST_OVERDUE: Final = (datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))
"""A place before all holds that are due."""

_SNAPSHOT_FEWEST: Final = 1_000
"""With fewer entries since the last one a snapshot isn't worth its row."""

_SNAPSHOT_MOST: Final = 50_000


class Upkeep:
    """The ledger's own work; every method may be called at any time, by any number of processes.

    All raise LedgerUnavailableError where there is no place or no connection in time, after which they may be called again.
    """

    def __init__(
        self,
        database: Database,
        engine: PostingEngine,
        lookups: Lookups,
        new_id: Callable[[], UUID],
        *,
        sweep_period_seconds: float = 3_600.0,
    ) -> None:
        """Take what the service takes; in each period a striped account is swept once."""
        self._database = database
        self._engine = engine
        self._lookups = lookups
        self._new_id = new_id
        self._sweep_period_seconds = sweep_period_seconds

    async def expire_holds(self, limit: int = 500) -> int:
        """Release the holds whose time is over, the longest overdue first; returns how many this call has released.

        0 where none is due any more, but for such as can't be released, which the log names: where others have released
        all that was found here, it looks again, for they may end before they have released the rest.
        """
        place = _LONGEST_OVERDUE
        while True:
            due = await self._holds_due(limit, place)
            if not due:
                return 0
            outcomes = await self._post(await self._releases([hold_id for _, hold_id in due]))
            released = sum(map(_is_new, outcomes))
            if released:
                return released
            if not any(map(_was_done_elsewhere, outcomes)):
                # None of these can be released now; what stands in their way mustn't keep those behind them.
                place = due[-1]

    async def _holds_due(
        self, limit: int, after: tuple[datetime, UUID]
    ) -> list[tuple[datetime, UUID]]:
        expires_at, hold_id = after
        values = {"limit": limit, "after_expires_at": expires_at, "after_id": hold_id}
        try:
            async with self._database.read_only() as connection:
                rows = (await connection.execute(_SQL["holds_due"], values)).all()
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        return [(row.expires_at, row.id) for row in rows]

    async def _releases(self, due: Sequence[UUID]) -> list[PostingRequest]:
        try:
            found = await asyncio.gather(*(self._lookups.held_money(hold_id) for hold_id in due))
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        return [expire_hold(held, self._new_id()) for held in found if held is not None]

    async def sweep_hot_accounts(self) -> int:
        """Gather the stripes of every striped account, once in a period; returns how many accounts were swept."""
        try:
            async with self._database.read_only() as connection:
                rows = await connection.execute(
                    _SQL["accounts_to_sweep"], {"period_seconds": self._sweep_period_seconds}
                )
                wanted = rows.all()
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        outcomes = await self._post(
            [sweep_by_itself(row.id, row.key, self._new_id()) for row in wanted]
        )
        return sum(map(_is_new, outcomes))

    async def take_snapshots(self) -> int:
        """Note the balances of derived accounts that have moved a good deal since; returns how many snapshots were taken."""
        taken = 0
        try:
            async with self._database.read_only() as connection:
                account_ids = list((await connection.execute(_SQL["derived_accounts"])).scalars())
                if not account_ids:
                    return 0
                settled: int = (await connection.execute(_SQL["settled_stamp"])).scalar_one()
            for account_id in account_ids:
                while await self._take_snapshot(account_id, first_unsettled(settled)):
                    taken += 1
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        return taken

    async def _take_snapshot(self, account_id: UUID, unsettled: int) -> bool:
        async with self._database.transaction() as connection:
            result = await connection.execute(
                _SQL["take_snapshot"],
                {
                    "account_id": account_id,
                    "first_unsettled": unsettled,
                    "fewest": _SNAPSHOT_FEWEST,
                    "most": _SNAPSHOT_MOST,
                },
            )
            return result.one_or_none() is not None

    async def _post(self, requests: list[PostingRequest]) -> list[Outcome]:
        """Post each request by itself; one that fails by a fault of ours is logged by the engine and keeps no other back."""
        outcomes: list[Outcome] = []
        for first in range(0, len(requests), _AT_ONCE):
            share = requests[first : first + _AT_ONCE]
            answers = await asyncio.gather(
                *(self._engine.post((request,)) for request in share), return_exceptions=True
            )
            for request, answer in zip(share, answers, strict=True):
                if isinstance(answer, LedgerIncidentError):
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                (outcome,) = answer
                outcomes.append(outcome)
                _warn_where_refused(request, outcome)
        return outcomes


def _warn_where_refused(request: PostingRequest, outcome: Outcome) -> None:
    if isinstance(outcome, Refused) and not _was_done_elsewhere(outcome):
        code = outcome.refusal.code
        log.warning("upkeep was refused", type=request.type, key=request.key, code=code)


def _is_new(outcome: Outcome) -> bool:
    return isinstance(outcome, Posted) and not outcome.replayed


def _was_done_elsewhere(outcome: Outcome) -> bool:
    """Tell whether somebody else was faster, which is nothing to speak of."""
    match outcome:
        case Replay() | Posted(replayed=True) | Refused(HoldNotOpen() | WithdrawalNotPending()):
            return True
        case _:
            return False

"""What became of postings, told to who asked for them: replays are read again, and lines of others are left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from app.database import Database
from app.ledger import reading
from app.ledger.idempotency import KnownKey
from app.ledger.model import AccountPurpose, Caller, Entry, Hold, Transaction
from app.ledger.posting.changes import Posted
from app.ledger.posting.decision import NotAttempted, Outcome, Refused, Replay
from app.ledger.reading import histories

PostingAnswer: TypeAlias = Posted | Refused | NotAttempted
"""What became of a posting; the entries of `Posted` are those that its caller may read."""


@dataclass(frozen=True, slots=True)
class HoldPosted:
    """A hold or withdrawal was placed or ended, now or by an earlier request with the same key."""

    hold: Hold
    """As it stands: after a replay it may have gone on since."""
    transaction: Transaction
    replayed: bool


HoldAnswer: TypeAlias = HoldPosted | Refused


class Answers:
    """Turns outcomes of the engine into answers for a caller."""

    def __init__(self, database: Database) -> None:
        """Take a pool for reading."""
        self._database = database

    async def of(self, caller: Caller, outcomes: Sequence[Outcome]) -> list[PostingAnswer]:
        """Answer each outcome; raises DatabaseUnavailableError where something has to be read again and can't be."""
        replayed = [
            outcome.known.transaction_id
            for outcome in outcomes
            if isinstance(outcome, Replay) and outcome.known.transaction_id is not None
        ]
        transactions: Mapping[UUID, Transaction] = {}
        entries: Mapping[UUID, tuple[Entry, ...]] = {}
        if replayed:
            async with self._database.read_only() as connection:
                transactions = await reading.transactions_by_id(connection, replayed)
            entries = await histories.entries_of_transactions(self._database, replayed)
        visible = {
            index: _visible(caller, outcome)
            for index, outcome in enumerate(outcomes)
            if isinstance(outcome, Posted)
        }
        lines = [line for posted in visible.values() for line in posted.entries]
        completed = iter(await histories.with_balances(self._database, lines))
        answers: list[PostingAnswer] = []
        for index, outcome in enumerate(outcomes):
            match outcome:
                case Replay(KnownKey(transaction_id=UUID() as transaction_id)):
                    posted = Posted(
                        transactions[transaction_id], entries[transaction_id], replayed=True
                    )
                    answers.append(_visible(caller, posted))
                case Posted():
                    posted = visible[index]
                    entries_now = tuple(next(completed) for _ in posted.entries)
                    answers.append(replace(posted, entries=entries_now))
                case Refused() | NotAttempted():
                    answers.append(outcome)
                case Replay():
                    # A key of another operation conflicts by its fingerprint, so it never gets here.
                    raise AssertionError(
                        "a posting was replayed from a key that stands for no transaction"
                    )
        return answers

    async def of_hold(self, caller: Caller, outcome: Outcome) -> HoldAnswer:
        """Answer the outcome of a posting that places or ends a hold; raises DatabaseUnavailableError."""
        (answer,) = await self.of(caller, [outcome])
        match answer:
            case Refused():
                return answer
            case Posted(transaction, _, replayed, Hold() as hold):
                return HoldPosted(hold, transaction, replayed)
            case Posted(Transaction(hold_id=UUID() as hold_id) as transaction, _, replayed):
                async with self._database.read_only() as connection:
                    holds = await reading.holds_by_id(connection, [hold_id])
                return HoldPosted(holds[hold_id], transaction, replayed)
            case _:
                raise AssertionError("a posting that should have a hold has none")


def _visible(caller: Caller, posted: Posted) -> Posted:
    return replace(
        posted,
        entries=tuple(
            entry
            for entry in posted.entries
            if entry.account.purpose is AccountPurpose.MAIN and caller.may_read(entry.account)
        ),
    )

"""The ledger as its callers see it: the commands that open accounts and move money.

Every method takes the caller first and judges rights itself, so that no way of calling it can forget to.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import UUID

from app.database import Database, DatabaseUnavailableError
from app.ledger import reading
from app.ledger.accounts import (
    CLEARING_PREFIX,
    OpenAccountCommand,
    insert_account_in_tx,
    insert_account_key_in_tx,
    opening_fingerprint,
    refuse_opening,
    required_scopes,
)
from app.ledger.engine import PostingEngine
from app.ledger.errors import CodeTaken, InvalidInput, LedgerUnavailableError, Refusal
from app.ledger.idempotency import KnownKey, conflict_with
from app.ledger.model import Account, AccountKind, Caller, Entry, Scope, Transaction
from app.ledger.movements.deposits import DepositCommand, deposit, refuse_deposit
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.posting import NotAttempted, Outcome, Posted, Refused, Replay
from app.ledger.requests import PostingRequest
from app.ledger.waiting import Outcomes

BATCH_LIMIT: Final = 1_000
"""Most transfers that one batch may carry."""

_SHARE_OF_A_BATCH: Final = 128
"""How many transfers of one batch wait for the engine at a time."""

_OPENING_ATTEMPTS: Final = 3

PostingAnswer: TypeAlias = Posted | Refused | NotAttempted
"""What became of a posting; the entries of `Posted` are those that its caller may read."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The account was opened, now or by an earlier request with the same key."""

    account: Account
    replayed: bool


class Ledger:
    """The one object through which everything above changes the ledger; `Reader` is the one for reading."""

    def __init__(
        self, database: Database, engine: PostingEngine, new_id: Callable[[], UUID]
    ) -> None:
        """Take a pool for reading and opening, the engine for posting, and the maker of UUIDv7 ids."""
        self._database = database
        self._engine = engine
        self._new_id = new_id
        self._clearing_ids: dict[str, UUID] = {}

    async def open_account(self, caller: Caller, command: OpenAccountCommand) -> Opened | Refused:
        """Open an account; WALLET opens ordinary wallets of the caller's own, OPERATE any.

        Raises MissingScopeError and LedgerUnavailableError.
        """
        caller.require(*required_scopes(command, caller))
        refusal = refuse_opening(command, caller)
        if refusal is not None:
            return Refused(refusal)
        with _unavailable_as_one():
            for _ in range(_OPENING_ATTEMPTS):
                answer = await self._try_to_open(caller, command)
                if answer is not None:
                    return answer
        raise LedgerUnavailableError

    async def transfer(self, caller: Caller, command: TransferCommand) -> PostingAnswer:
        """Move money from an account of the caller's; needs WALLET.

        Raises MissingScopeError, LedgerUnavailableError and LedgerIncidentError.
        """
        caller.require(Scope.WALLET)
        return await self._post(caller, transfer(command, caller.subject, self._new_id()))

    async def transfer_batch(
        self, caller: Caller, commands: Sequence[TransferCommand], *, atomic: bool
    ) -> Refused | list[PostingAnswer]:
        """Make many transfers, all or nothing where `atomic`, otherwise each on its own; needs WALLET.

        Raises MissingScopeError, LedgerUnavailableError and LedgerIncidentError. After LedgerUnavailableError some of
        the transfers may be booked; the same batch may be sent again, since each has its key.
        """
        caller.require(Scope.WALLET)
        if len(commands) > BATCH_LIMIT:
            return Refused(
                InvalidInput(("transfers",), f"must have at most {BATCH_LIMIT} transfers")
            )
        requests = [transfer(command, caller.subject, self._new_id()) for command in commands]
        if not atomic:
            return await self._post_each(caller, requests)
        refused = next(
            (index for index, request in enumerate(requests) if isinstance(request, Refusal)), None
        )
        if refused is not None:
            return [
                Refused(request)
                if isinstance(request, Refusal) and index == refused
                else NotAttempted()
                for index, request in enumerate(requests)
            ]
        if not requests:
            return []
        group = tuple(request for request in requests if isinstance(request, PostingRequest))
        return await self._answers(caller, await self._engine.post(group))

    async def deposit(
        self, caller: Caller, command: DepositCommand, *, default_clearing: bool
    ) -> PostingAnswer:
        """Book money that came in; needs OPERATE. `default_clearing` books against the platform's clearing account.

        Raises MissingScopeError, LedgerUnavailableError and LedgerIncidentError.
        """
        caller.require(Scope.OPERATE)
        if default_clearing:
            # A clearing account is opened on first use, and a deposit that can't be booked is no use.
            refusal = refuse_deposit(command)
            if refusal is not None:
                return Refused(refusal)
            clearing_id = await self._clearing_account_id(command.amount.currency)
            command = replace(command, clearing_account_id=clearing_id)
        return await self._post(caller, deposit(command, caller.subject, self._new_id()))

    async def _post(self, caller: Caller, request: PostingRequest | Refusal) -> PostingAnswer:
        if isinstance(request, Refusal):
            return Refused(request)
        (answer,) = await self._answers(caller, await self._engine.post((request,)))
        return answer

    async def _post_each(
        self, caller: Caller, requests: Sequence[PostingRequest | Refusal]
    ) -> list[PostingAnswer]:
        """Hand the requests to the engine a share at a time, each on its own, so that they fill its batches.

        All of them at once would fill its queue instead: the last ones would miss the deadline because of the first, and
        so would everybody else's.
        """
        postings = [request for request in requests if isinstance(request, PostingRequest)]
        answers: list[Outcomes] = []
        for first in range(0, len(postings), _SHARE_OF_A_BATCH):
            share = postings[first : first + _SHARE_OF_A_BATCH]
            answers += await asyncio.gather(*(self._engine.post((request,)) for request in share))
        outcomes: list[Outcome] = []
        arrived = iter(answers)
        for request in requests:
            if isinstance(request, Refusal):
                outcomes.append(Refused(request))
                continue
            outcomes.extend(next(arrived))
        return await self._answers(caller, outcomes)

    async def _answers(self, caller: Caller, outcomes: Sequence[Outcome]) -> list[PostingAnswer]:
        """Read again what replays once answered, and leave out the entries that the caller may not read."""
        replayed = [
            outcome.known.transaction_id
            for outcome in outcomes
            if isinstance(outcome, Replay) and outcome.known.transaction_id is not None
        ]
        transactions: Mapping[UUID, Transaction] = {}
        entries: Mapping[UUID, tuple[Entry, ...]] = {}
        if replayed:
            with _unavailable_as_one():
                async with self._database.read_only() as connection:
                    transactions = await reading.transactions_by_id(connection, replayed)
                    entries = await reading.entries_of_transactions(connection, replayed)
        answers: list[PostingAnswer] = []
        for outcome in outcomes:
            match outcome:
                case Replay(KnownKey(transaction_id=UUID() as transaction_id)):
                    answer = Posted(
                        transactions[transaction_id], entries[transaction_id], replayed=True
                    )
                    answers.append(_visible(caller, answer))
                case Posted():
                    answers.append(_visible(caller, outcome))
                case Refused() | NotAttempted():
                    answers.append(outcome)
                case Replay():
                    # A key of another operation conflicts by its fingerprint, so it never gets here.
                    raise AssertionError(
                        "a posting was replayed from a key that stands for no transaction"
                    )
        return answers

    async def _try_to_open(
        self, caller: Caller, command: OpenAccountCommand
    ) -> Opened | Refused | None:
        """Open once; None means that another request booked the key or the code at the same moment."""
        asked = opening_fingerprint(command)
        async with self._database.transaction() as connection:
            known = await reading.known_key(connection, caller.subject, command.key)
            if known is not None:
                conflict = conflict_with(known, asked)
                if conflict is not None or known.account_id is None:
                    return Refused(conflict) if conflict is not None else None
                found = await reading.accounts_by_id(connection, [known.account_id])
                return Opened(found[known.account_id], replayed=True)
            account = await insert_account_in_tx(connection, self._new_id(), command)
            if account is None:
                # The code may have been taken by this very request, sent twice at the same moment.
                mine = await reading.known_key(connection, caller.subject, command.key)
                return Refused(CodeTaken(("code",))) if mine is None else None
            booked = await insert_account_key_in_tx(
                connection, caller.subject, command.key, asked, account.id
            )
            if not booked:
                await connection.rollback()
                return None
        return Opened(account, replayed=False)

    async def _clearing_account_id(self, currency: str) -> UUID:
        """Find the platform's clearing account of a currency, opening it on first use."""
        known = self._clearing_ids.get(currency)
        if known is not None:
            return known
        code = f"{CLEARING_PREFIX}{currency}"
        command = OpenAccountCommand(
            key="",
            currency=currency,
            owner=None,
            code=code,
            kind=AccountKind.ASSET,
            allow_negative=True,
        )
        with _unavailable_as_one():
            async with self._database.transaction() as connection:
                account = await insert_account_in_tx(connection, self._new_id(), command)
                if account is None:
                    account = await reading.account_by_code(connection, code)
        if account is None:
            raise LedgerUnavailableError
        self._clearing_ids[currency] = account.id
        return account.id


@contextmanager
def _unavailable_as_one() -> Generator[None]:
    """Let a command know one kind of unavailability, whichever of the ledger's connections was missing."""
    try:
        yield
    except DatabaseUnavailableError as error:
        raise LedgerUnavailableError from error


def _visible(caller: Caller, posted: Posted) -> Posted:
    return Posted(
        posted.transaction,
        tuple(entry for entry in posted.entries if caller.may_read(entry.account)),
        posted.replayed,
    )

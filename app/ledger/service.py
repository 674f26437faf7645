"""The ledger as its callers see it: the commands that open accounts and move money.

Every method takes the caller first and judges rights itself, so that no way of calling it can forget to.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import UUID

from app.database import Database, DatabaseUnavailableError
from app.ledger.accounts import OpenAccountCommand, refuse_opening, required_scopes
from app.ledger.administration import Administration, Opened, SetAccountStatusCommand
from app.ledger.answers import Answers, HoldAnswer, PostingAnswer
from app.ledger.errors import (
    InvalidInput,
    LedgerUnavailableError,
    Refusal,
)
from app.ledger.model import Account, Caller, Scope, Transaction
from app.ledger.movements.deposits import DepositCommand, deposit, refuse_deposit
from app.ledger.movements.holds import (
    CaptureHoldCommand,
    HeldMoney,
    PlaceHoldCommand,
    VoidHoldCommand,
    capture_hold,
    place_hold,
    void_hold,
)
from app.ledger.movements.postings import PostTransactionCommand, post_transaction
from app.ledger.movements.reversals import RefundCommand, ReverseCommand, refund, reverse
from app.ledger.movements.sweeps import SweepCommand, sweep
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
    settle_withdrawal,
    withdraw,
)
from app.ledger.posting.decision import NotAttempted, Outcome, Refused
from app.ledger.posting.engine import PostingEngine
from app.ledger.posting.waiting import Outcomes
from app.ledger.reading.lookups import Lookups
from app.ledger.requests import PostingRequest
from app.ledger.system_accounts import SystemAccounts

BATCH_LIMIT: Final = 1_000
"""Most transfers that one batch may carry."""

_SHARE_OF_A_BATCH: Final = 128
"""How many transfers of one batch wait for the engine at a time."""


class Ledger:
    """The one object through which everything above changes the ledger; `Reader` is the one for reading.

    Every method raises MissingScopeError where the caller lacks what it needs and LedgerUnavailableError where there was
    no place or no connection in time; those that move money raise LedgerIncidentError for a fault of ours.
    """

    def __init__(
        self,
        database: Database,
        engine: PostingEngine,
        lookups: Lookups,
        new_id: Callable[[], UUID],
    ) -> None:
        """Take a pool for reading and opening, the engine, what is looked up before posting, and the maker of UUIDv7 ids."""
        self._engine = engine
        self._lookups = lookups
        self._new_id = new_id
        self._administration = Administration(database, new_id)
        self._answers = Answers(database)
        self._system_accounts = SystemAccounts(database, new_id)

    # ------------------------------------------------------------ accounts

    async def open_account(self, caller: Caller, command: OpenAccountCommand) -> Opened | Refused:
        """Open an account; WALLET opens ordinary wallets of the caller's own, OPERATE any."""
        caller.require(*required_scopes(command, caller))
        refusal = refuse_opening(command, caller)
        if refusal is not None:
            return Refused(refusal)
        with _unavailable_as_one():
            return await self._administration.open_account(caller.subject, command)

    async def set_account_status(
        self, caller: Caller, command: SetAccountStatusCommand
    ) -> Account | Refused:
        """Freeze, thaw or close an account; needs OPERATE."""
        caller.require(Scope.OPERATE)
        with _unavailable_as_one():
            return await self._administration.set_status(caller.subject, command)

    # ------------------------------------------------------------ between accounts

    async def transfer(self, caller: Caller, command: TransferCommand) -> PostingAnswer:
        """Move money from an account of the caller's; needs WALLET."""
        caller.require(Scope.WALLET)
        return await self._post(caller, transfer(command, caller.subject, self._new_id()))

    async def transfer_batch(
        self, caller: Caller, commands: Sequence[TransferCommand], *, atomic: bool
    ) -> Refused | list[PostingAnswer]:
        """Make many transfers, all or nothing where `atomic`, otherwise each on its own; needs WALLET.

        After LedgerUnavailableError some of the transfers may be booked; the same batch may be sent again, since each has
        its key.
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
        return await self._answer(caller, await self._engine.post(group))

    async def deposit(
        self, caller: Caller, command: DepositCommand, *, default_clearing: bool
    ) -> PostingAnswer:
        """Book money that came in; needs OPERATE. `default_clearing` books against the platform's clearing account."""
        caller.require(Scope.OPERATE)
        if default_clearing:
            # A clearing account is opened on first use, and a deposit that can't be booked is no use.
            refusal = refuse_deposit(command)
            if refusal is not None:
                return Refused(refusal)
            clearing_id = await self._system_accounts.clearing(command.amount.currency)
            command = replace(command, clearing_account_id=clearing_id)
        return await self._post(caller, deposit(command, caller.subject, self._new_id()))

    async def post_transaction(
        self, caller: Caller, command: PostTransactionCommand
    ) -> PostingAnswer:
        """Book any balanced set of legs; needs OPERATE."""
        caller.require(Scope.OPERATE)
        return await self._post(caller, post_transaction(command, caller.subject, self._new_id()))

    async def reverse(self, caller: Caller, command: ReverseCommand) -> PostingAnswer:
        """Book an earlier transaction the other way round, once; needs OPERATE."""
        caller.require(Scope.OPERATE)
        original = await self._original(command.transaction_id)
        return await self._post(caller, reverse(command, original, caller.subject, self._new_id()))

    async def refund(self, caller: Caller, command: RefundCommand) -> PostingAnswer:
        """Give back some of what an earlier transaction of two parties has moved; needs OPERATE."""
        caller.require(Scope.OPERATE)
        original = await self._original(command.transaction_id)
        return await self._post(caller, refund(command, original, caller.subject, self._new_id()))

    async def sweep(self, caller: Caller, command: SweepCommand) -> PostingAnswer:
        """Gather the money of a striped account in its first stripe; needs OPERATE."""
        caller.require(Scope.OPERATE)
        return await self._post(caller, sweep(command, caller.subject, self._new_id()))

    # ------------------------------------------------------------ holds and withdrawals

    async def place_hold(self, caller: Caller, command: PlaceHoldCommand) -> HoldAnswer:
        """Set money aside; WALLET on an account of the caller's own, OPERATE on any."""
        caller.require(Scope.WALLET, Scope.OPERATE)
        owner = None if Scope.OPERATE in caller.scopes else caller.subject
        return await self._post_hold(
            caller,
            place_hold(command, caller.subject, self._new_id(), self._new_id(), owner=owner),
        )

    async def capture_hold(self, caller: Caller, command: CaptureHoldCommand) -> HoldAnswer:
        """Pay somebody from a hold, once, and release the rest; needs OPERATE."""
        caller.require(Scope.OPERATE)
        held = await self._held_money(command.hold_id)
        return await self._post_hold(
            caller, capture_hold(command, held, caller.subject, self._new_id())
        )

    async def void_hold(self, caller: Caller, command: VoidHoldCommand) -> HoldAnswer:
        """Give back all that is held; needs OPERATE."""
        caller.require(Scope.OPERATE)
        held = await self._held_money(command.hold_id)
        return await self._post_hold(
            caller, void_hold(command, held, caller.subject, self._new_id())
        )

    async def withdraw(self, caller: Caller, command: WithdrawCommand) -> HoldAnswer:
        """Set money of the caller's aside on its way to a bank; needs WALLET."""
        caller.require(Scope.WALLET)
        return await self._post_hold(
            caller, withdraw(command, caller.subject, self._new_id(), self._new_id())
        )

    async def settle_withdrawal(
        self, caller: Caller, command: SettleWithdrawalCommand
    ) -> HoldAnswer:
        """Book what the bank says of a withdrawal; needs OPERATE."""
        caller.require(Scope.OPERATE)
        held = await self._held_money(command.withdrawal_id)
        clearing_id = None
        if held is not None and command.outcome is SettlementOutcome.COMPLETED:
            clearing_id = await self._system_accounts.clearing(held.currency)
        return await self._post_hold(
            caller, settle_withdrawal(command, held, clearing_id, caller.subject, self._new_id())
        )

    # ------------------------------------------------------------ how

    async def _original(self, transaction_id: UUID | None) -> Transaction | None:
        if transaction_id is None:
            return None
        with _unavailable_as_one():
            return await self._lookups.transaction(transaction_id)

    async def _held_money(self, hold_id: UUID | None) -> HeldMoney | None:
        if hold_id is None:
            return None
        with _unavailable_as_one():
            return await self._lookups.held_money(hold_id)

    async def _post(self, caller: Caller, request: PostingRequest | Refusal) -> PostingAnswer:
        if isinstance(request, Refusal):
            return Refused(request)
        (answer,) = await self._answer(caller, await self._engine.post((request,)))
        return answer

    async def _post_hold(self, caller: Caller, request: PostingRequest | Refusal) -> HoldAnswer:
        if isinstance(request, Refusal):
            return Refused(request)
        (outcome,) = await self._engine.post((request,))
        with _unavailable_as_one():
            return await self._answers.of_hold(caller, outcome)

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
        return await self._answer(caller, outcomes)

    async def _answer(self, caller: Caller, outcomes: Sequence[Outcome]) -> list[PostingAnswer]:
        with _unavailable_as_one():
            return await self._answers.of(caller, outcomes)


@contextmanager
def _unavailable_as_one() -> Generator[None]:
    """Let a command know one kind of unavailability, whichever of the ledger's connections was missing."""
    try:
        yield
    except DatabaseUnavailableError as error:
        raise LedgerUnavailableError from error

"""The ledger as its callers see it: commands that move money, and reads that show nobody what isn't theirs.

Every method takes the caller first and judges rights itself, so that no way of calling it can forget to. Methods that
take an `Account` instead were handed one that the caller may read.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from app.database import Database, DatabaseUnavailableError
from app.ledger import movements, reading
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
from app.ledger.model import Account, AccountKind, Balance, Caller, Entry, Scope, Transaction
from app.ledger.movements import DepositCommand, PostingRequest, TransferCommand
from app.ledger.pages import AccountFilter, EntryFilter, Page, PageRequest
from app.ledger.posting import NotAttempted, Outcome, Posted, Refused, Replay
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
    """The one object through which everything above reads and writes the ledger."""

    def __init__(
        self, database: Database, engine: PostingEngine, new_id: Callable[[], UUID]
    ) -> None:
        """Take a pool for reading and opening, the engine for posting, and the maker of UUIDv7 ids."""
        self._database = database
        self._engine = engine
        self._new_id = new_id
        self._clearing_ids: dict[str, UUID] = {}

    # ------------------------------------------------------------ commands

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
        return await self._post(caller, movements.transfer(command, caller.subject, self._new_id()))

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
        requests = [
            movements.transfer(command, caller.subject, self._new_id()) for command in commands
        ]
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
            refusal = movements.refuse_deposit(command)
            if refusal is not None:
                return Refused(refusal)
            clearing_id = await self._clearing_account_id(command.amount.currency)
            command = replace(command, clearing_account_id=clearing_id)
        return await self._post(caller, movements.deposit(command, caller.subject, self._new_id()))

    # ------------------------------------------------------------ reads

    async def accounts(self, caller: Caller, ids: Sequence[UUID]) -> Mapping[UUID, Account]:
        """Read those of the accounts that the caller may read."""
        async with self._database.read_only() as connection:
            found = await reading.accounts_by_id(connection, ids)
        return {
            account_id: account for account_id, account in found.items() if caller.may_read(account)
        }

    async def account_by_code(self, caller: Caller, code: str) -> Account | None:
        """Read the account with this code, if the caller may read it."""
        async with self._database.read_only() as connection:
            account = await reading.account_by_code(connection, code)
        return account if account is not None and caller.may_read(account) else None

    async def payee(self, code: str) -> Account | None:
        """Find whom one is about to pay: any account that has a code and an owner."""
        async with self._database.read_only() as connection:
            account = await reading.account_by_code(connection, code)
        return account if account is not None and account.owner is not None else None

    async def own_accounts(
        self, caller: Caller, wanted: AccountFilter, page: PageRequest[UUID]
    ) -> Page[Account]:
        """Read a page of the caller's accounts, oldest first; empty for who may not read any."""
        if not caller.scopes.intersection({Scope.WALLET, Scope.AUDIT}):
            return Page((), has_next=False, has_previous=False)
        async with self._database.read_only() as connection:
            return await reading.accounts_of_owner(connection, caller.subject, wanted, page)

    async def count_own_accounts(self, caller: Caller, wanted: AccountFilter) -> int | None:
        """Count the caller's accounts; None where that would read more than reading.COUNT_BOUND rows."""
        if not caller.scopes.intersection({Scope.WALLET, Scope.AUDIT}):
            return 0
        async with self._database.read_only() as connection:
            return await reading.count_accounts_of_owner(connection, caller.subject, wanted)

    async def balances(self, ids: Sequence[UUID]) -> Mapping[UUID, Balance]:
        """Read what accounts that the caller may read have now, all at one instant."""
        async with self._database.read_only() as connection:
            return await reading.balances(connection, ids)

    async def balances_at(self, ids: Sequence[UUID], at: datetime) -> Mapping[UUID, int]:
        """Read what accounts that the caller may read had posted at an instant; signed, credit positive."""
        async with self._database.read_only() as connection:
            return await reading.balances_at(connection, ids, at)

    async def entry_page(
        self, account: Account, wanted: EntryFilter, page: PageRequest[int], *, newest_first: bool
    ) -> Page[Entry]:
        """Read a page of the account's history; the keys are sequences."""
        async with self._database.read_only() as connection:
            return await reading.entry_page(
                connection, account, wanted, page, newest_first=newest_first
            )

    async def count_entries(self, account: Account, wanted: EntryFilter) -> int | None:
        """Count the account's entries; None where that would read more than reading.COUNT_BOUND rows."""
        async with self._database.read_only() as connection:
            return await reading.count_entries(connection, account, wanted)

    async def entries_after(self, account: Account, sequence: int, limit: int) -> Sequence[Entry]:
        """Read the entries that follow the sequence, in order, at most `limit`."""
        page = await self.entry_page(
            account, EntryFilter(), PageRequest(limit, after=sequence), newest_first=False
        )
        return page.items

    async def entry(self, caller: Caller, account_id: UUID, sequence: int) -> Entry | None:
        """Read one entry, if the caller may read its account."""
        account = (await self.accounts(caller, [account_id])).get(account_id)
        if account is None:
            return None
        entries = await self.entries_after(account, sequence - 1, 1)
        return entries[0] if entries and entries[0].sequence == sequence else None

    async def transactions(self, caller: Caller, ids: Sequence[UUID]) -> Mapping[UUID, Transaction]:
        """Read those of the transactions that the caller may see."""
        async with self._database.read_only() as connection:
            found = await reading.transactions_by_id(connection, ids)
        return {
            transaction_id: transaction
            for transaction_id, transaction in found.items()
            if caller.may_see(transaction)
        }

    async def transaction_by_key(self, caller: Caller, key: str) -> Transaction | None:
        """Read what became of the caller's own key; None where it stands for no transaction; needs any scope.

        Raises MissingScopeError.
        """
        caller.require(*Scope)
        async with self._database.read_only() as connection:
            known = await reading.known_key(connection, caller.subject, key)
            if known is None or known.transaction_id is None:
                return None
            found = await reading.transactions_by_id(connection, [known.transaction_id])
        return found[known.transaction_id]

    async def transaction_ids_of_entries(
        self, sequences: Mapping[UUID, int]
    ) -> Mapping[UUID, UUID]:
        """Read which transaction wrote the entry with this sequence, for each account."""
        async with self._database.read_only() as connection:
            return await reading.transaction_ids_of_entries(connection, sequences)

    async def reversals(self, ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """Read which transactions reverse or refund each of these, oldest first."""
        async with self._database.read_only() as connection:
            return await reading.reversals(connection, ids)

    # ------------------------------------------------------------ how

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

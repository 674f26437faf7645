"""The real ledger as the machine drives it: one call after the other, while the ledger itself lives on an event loop.

The loop runs for as long as a call takes and rests in between, with the ledger's engine and its connections on it.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import singledispatch
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from app.embedded import RunningPostgres
from app.ledger.accounts import OpenAccountCommand
from app.ledger.administration import Opened, SetAccountStatusCommand
from app.ledger.answers import HoldPosted
from app.ledger.model import (
    Account,
    AccountKind,
    AccountStatus,
    Balance,
    BalanceTracking,
    Caller,
    Direction,
    Entry,
    Scope,
)
from app.ledger.money import Money
from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.movements.reversals import RefundCommand, ReverseCommand
from app.ledger.movements.sweeps import SweepCommand
from app.ledger.movements.transfers import TransferCommand
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
)
from app.ledger.pages import EntryFilter, PageRequest
from app.ledger.posting.changes import Posted
from app.ledger.posting.decision import Refused
from tests.stateful import requests, things
from tests.stateful.model import OPERATOR
from tests.support.invariants import assert_right_in
from tests.support.ledger import running_ledger, wallet_user
from tests.support.postgres import TestDatabase, connect

Value = TypeVar("Value")
RealAnswer: TypeAlias = Opened | Posted | HoldPosted | Refused

FAR_AWAY: Final = datetime(2100, 1, 1, tzinfo=UTC)
_PAGE: Final = 3

_HOLDS: Final = "select id, account_id, purpose, amount, captured, status from hold order by id"
_STATUSES: Final = "select id, status from account where purpose = 'MAIN'"
_OVERDUE: Final = (
    "update hold set expires_at = clock_timestamp() - interval '1 second' where id = $1"
)
_LAST_OF_HOLD: Final = """
select id, posted_at from journal where hold_id = $1 order by posted_at desc, id desc limit 1
"""
_OUTSIDE_FIRST_STRIPE: Final = """
select exists (select from account where parent_id = $1 and stripe > 0 and balance <> 0)
"""


def caller_of(subject: str) -> Caller:
    return Caller(OPERATOR, frozenset(Scope)) if subject == OPERATOR else wallet_user(subject)


class Databases:
    """Makes a database for each example, which is dropped when its ledger is closed."""

    def __init__(self, server: RunningPostgres, template: str) -> None:
        self._server = server
        self._template = template
        self._numbers = itertools.count(1)

    def open_ledger(self) -> "RealLedger":
        name = f"example_{next(self._numbers)}"
        self._server.create_database(name, self._template)
        return RealLedger(
            TestDatabase.of(self._server, name), lambda: self._server.drop_database(name)
        )


class RealLedger:
    """A ledger on a database of its own; close it when done."""

    def __init__(self, database: TestDatabase, dropped: Callable[[], None]) -> None:
        self._dropped = dropped
        # A factory keeps the runner from making its loop the thread's, which has one of the tests' already.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._stack = AsyncExitStack()
        self._running = self._do(
            self._stack.enter_async_context(running_ledger(database.runtime_url))
        )
        self._beside = self._do(self._stack.enter_async_context(connect(database.superuser_url)))

    def close(self) -> None:
        self._do(self._stack.aclose())
        self._runner.close()
        self._dropped()

    # ------------------------------------------------------------ commands

    def send(self, request: requests.Request) -> RealAnswer:
        method, command = command_of(request)
        options: dict[str, bool] = {}
        if isinstance(request, requests.Deposit):
            options["default_clearing"] = request.clearing_account is None
        call = getattr(self._running.ledger, method)
        return self._do(call(caller_of(request.caller), command, **options))

    def set_status(self, account: things.Account, status: str) -> Account | Refused:
        command = SetAccountStatusCommand(account.id, AccountStatus(status))
        return self._do(self._running.ledger.set_account_status(caller_of(OPERATOR), command))

    def expire_holds(self) -> int:
        return self._do(self._running.upkeep.expire_holds())

    def sweep_hot_accounts(self) -> int:
        return self._do(self._running.upkeep.sweep_hot_accounts())

    def take_snapshots(self) -> int:
        return self._do(self._running.upkeep.take_snapshots())

    def let_time_pass(self, hold: things.Hold) -> None:
        """Bring the end of the hold's time before the database's clock, as only a superuser can."""
        self._do(self._beside.execute(_OVERDUE, hold.id))

    # ------------------------------------------------------------ what it shows

    def balances(self, accounts: Sequence[things.Account]) -> Mapping[UUID, Balance]:
        return self._do(self._running.reader.balances(_ids(accounts)))

    def balances_at(
        self, accounts: Sequence[things.Account], instant: datetime
    ) -> Mapping[UUID, int]:
        return self._do(self._running.reader.balances_at(_ids(accounts), instant))

    def history(self, account: things.Account, *, newest_first: bool) -> list[Entry]:
        """Read an account's whole history page by page; the oldest entry comes first in the answer."""
        return self._do(self._history(account, newest_first=newest_first))

    async def _history(self, account: things.Account, *, newest_first: bool) -> list[Entry]:
        reader = self._running.reader
        (found,) = (await reader.accounts(caller_of(OPERATOR), _ids([account]))).values()
        entries: list[Entry] = []
        request: PageRequest[int] = PageRequest(_PAGE)
        while True:
            page = await reader.entry_page(found, EntryFilter(), request, newest_first=newest_first)
            entries += page.items
            if not page.has_next:
                return entries[::-1] if newest_first else entries
            request = PageRequest(_PAGE, after=entries[-1].sequence)

    # ------------------------------------------------------------ what the tables hold

    def holds(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._do(self._beside.fetch(_HOLDS))]

    def statuses(self) -> dict[UUID, str]:
        return {row["id"]: row["status"] for row in self._do(self._beside.fetch(_STATUSES))}

    def clearing_id(self, currency: str) -> UUID | None:
        """Find the platform's clearing account; None where it wasn't needed yet."""
        query = "select id from account where code = $1"
        return self._do(self._beside.fetchval(query, f"system:bank_clearing:{currency}"))

    def last_transaction_of(self, hold: things.Hold) -> tuple[UUID, datetime]:
        row = self._do(self._beside.fetchrow(_LAST_OF_HOLD, hold.id))
        assert row is not None
        return row["id"], row["posted_at"]

    def is_scattered(self, account: things.Account) -> bool:
        return self._do(self._beside.fetchval(_OUTSIDE_FIRST_STRIPE, account.id))

    def assert_books_are_right(self) -> None:
        self._do(assert_right_in(self._beside))

    def _do(self, work: Coroutine[Any, Any, Value]) -> Value:
        return self._runner.run(work)


def _ids(accounts: Sequence[things.Account]) -> list[UUID]:
    return [account.id for account in accounts if account.id is not None]


@singledispatch
def command_of(request: requests.Request) -> tuple[str, object]:
    """Return the name of the ledger's method and the command for it."""
    raise AssertionError(request)


@command_of.register
def _(request: requests.OpenAccount) -> tuple[str, object]:
    return "open_account", OpenAccountCommand(
        key=request.key,
        currency=request.currency,
        owner=request.owner,
        kind=AccountKind(request.kind),
        allow_negative=request.allow_negative,
        tracking=BalanceTracking(request.tracking),
        stripes=request.stripes,
    )


@command_of.register
def _(request: requests.Transfer) -> tuple[str, object]:
    return "transfer", TransferCommand(
        key=request.key,
        from_account_id=request.from_account.id,
        to_account_id=request.to_account.id,
        amount=Money(*request.amount),
        description=request.description,
    )


@command_of.register
def _(request: requests.Deposit) -> tuple[str, object]:
    clearing = request.clearing_account
    return "deposit", DepositCommand(
        key=request.key,
        account_id=request.account.id,
        clearing_account_id=None if clearing is None else clearing.id,
        amount=Money(*request.amount),
        description=request.description,
    )


@command_of.register
def _(request: requests.PostTransaction) -> tuple[str, object]:
    return "post_transaction", PostTransactionCommand(
        key=request.key,
        type=request.type,
        legs=tuple(
            LegCommand(
                account_id=leg.account.id,
                direction=Direction(leg.direction),
                amount=Money(*leg.amount),
                if_sequence=leg.if_sequence,
            )
            for leg in request.legs
        ),
        description=request.description,
    )


@command_of.register
def _(request: requests.PlaceHold) -> tuple[str, object]:
    return "place_hold", PlaceHoldCommand(
        key=request.key,
        account_id=request.account.id,
        amount=Money(*request.amount),
        expires_at=request.expires_at,
        description=request.description,
    )


@command_of.register
def _(request: requests.CaptureHold) -> tuple[str, object]:
    return "capture_hold", CaptureHoldCommand(
        key=request.key,
        hold_id=request.hold.id,
        to_account_id=request.to_account.id,
        amount=None if request.amount is None else Money(*request.amount),
        description=request.description,
    )


@command_of.register
def _(request: requests.VoidHold) -> tuple[str, object]:
    return "void_hold", VoidHoldCommand(request.key, request.hold.id)


@command_of.register
def _(request: requests.Withdraw) -> tuple[str, object]:
    return "withdraw", WithdrawCommand(
        key=request.key,
        account_id=request.account.id,
        amount=Money(*request.amount),
        description=request.description,
    )


@command_of.register
def _(request: requests.SettleWithdrawal) -> tuple[str, object]:
    return "settle_withdrawal", SettleWithdrawalCommand(
        key=request.key,
        withdrawal_id=request.withdrawal.id,
        outcome=SettlementOutcome(request.outcome),
    )


@command_of.register
def _(request: requests.Reverse) -> tuple[str, object]:
    return "reverse", ReverseCommand(request.key, request.transaction.id, request.reason)


@command_of.register
def _(request: requests.Refund) -> tuple[str, object]:
    amount = Money(*request.amount)
    return "refund", RefundCommand(request.key, request.transaction.id, amount, request.reason)


@command_of.register
def _(request: requests.Sweep) -> tuple[str, object]:
    return "sweep", SweepCommand(request.key, request.account.id)

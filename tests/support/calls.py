"""Calls of the ledger's commands, each with a key of its own, for processes to make at the same moment."""

from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from app.ledger.administration import SetAccountStatusCommand
from app.ledger.model import Account, AccountStatus, Direction, Hold, Transaction
from app.ledger.money import Money
from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand, VoidHoldCommand
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.movements.reversals import RefundCommand, ReverseCommand
from app.ledger.movements.sweeps import SweepCommand
from app.ledger.movements.withdrawals import (
    SettlementOutcome,
    SettleWithdrawalCommand,
    WithdrawCommand,
)
from tests.support.ledger import OPERATOR, Wallet, new_key, vnd
from tests.support.servers import Call, call

Thing = TypeVar("Thing")


class Named(Protocol):
    """An account or a wallet."""

    @property
    def id(self) -> UUID: ...


def deposit(account: Account, minor_units: int) -> Call:
    """Bring money in through the platform's clearing account, which is opened on first use."""
    amount = Money(minor_units, account.currency)
    command = DepositCommand(new_key(), account.id, None, amount)
    return call("deposit", OPERATOR, command, default_clearing=True)


def general(source: Named, target: Named, minor_units: int) -> Call:
    """Debit one account and credit another, whatever they are."""
    return call("post_transaction", OPERATOR, general_command(source, target, minor_units))


def general_command(source: Named, target: Named, minor_units: int) -> PostTransactionCommand:
    legs = (
        LegCommand(source.id, Direction.DEBIT, vnd(minor_units)),
        LegCommand(target.id, Direction.CREDIT, vnd(minor_units)),
    )
    return PostTransactionCommand(new_key(), "sale", legs)


def place_hold(account: Named, minor_units: int) -> Call:
    return call("place_hold", OPERATOR, PlaceHoldCommand(new_key(), account.id, vnd(minor_units)))


def capture_hold(hold: Hold, target: Named, minor_units: int | None = None) -> Call:
    amount = None if minor_units is None else vnd(minor_units)
    command = CaptureHoldCommand(new_key(), hold.id, target.id, amount)
    return call("capture_hold", OPERATOR, command)


def void_hold(hold: Hold) -> Call:
    return call("void_hold", OPERATOR, VoidHoldCommand(new_key(), hold.id))


def withdraw(wallet: Wallet, minor_units: int) -> Call:
    return call("withdraw", wallet.owner, WithdrawCommand(new_key(), wallet.id, vnd(minor_units)))


def settle(withdrawal: Hold, outcome: SettlementOutcome) -> Call:
    command = SettleWithdrawalCommand(new_key(), withdrawal.id, outcome)
    return call("settle_withdrawal", OPERATOR, command)


def reverse(original: Transaction) -> Call:
    return call("reverse", OPERATOR, ReverseCommand(new_key(), original.id, "wrong"))


def refund(original: Transaction, minor_units: int) -> Call:
    return call("refund", OPERATOR, RefundCommand(new_key(), original.id, vnd(minor_units)))


def sweep(account: Named) -> Call:
    return call("sweep", OPERATOR, SweepCommand(new_key(), account.id))


def set_status(account: Named, status: AccountStatus) -> Call:
    return call("set_account_status", OPERATOR, SetAccountStatusCommand(account.id, status))


def in_rows(calls: Sequence[Call], rows: int = 4) -> list[list[Call]]:
    """Deal calls out to a few who make theirs one after the other.

    All of them at once would make one batch in each process, and one process would win every single race.
    """
    return [list(calls[first::rows]) for first in range(rows)]


def dealt_back(dealt: Sequence[Sequence[Thing]]) -> list[Thing]:
    """Put what came of `in_rows` back into the order of the calls."""
    longest = max(map(len, dealt))
    return [row[place] for place in range(longest) for row in dealt if place < len(row)]

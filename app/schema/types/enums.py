"""The ledger's enumerations as the API shows them."""

from enum import Enum

from app.ledger.model import (
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
    Direction,
    HoldStatus,
    Scope,
)
from app.ledger.movements.withdrawals import SettlementOutcome
from app.schema.described import enum_type

__all__ = [
    "AccountKind",
    "AccountPurpose",
    "AccountStatus",
    "BalanceTracking",
    "Direction",
    "HoldStatus",
    "Scope",
    "SettlementOutcome",
    "WithdrawalStatus",
]


class WithdrawalStatus(Enum):
    """How far a withdrawal has come; the ledger keeps it as the status of a hold."""

    PENDING = HoldStatus.OPEN
    COMPLETED = HoldStatus.CAPTURED
    FAILED = HoldStatus.VOIDED


enum_type(
    AccountKind,
    "The five kinds of double-entry bookkeeping. A wallet is a LIABILITY: money the platform owes its owner.",
    {
        "ASSET": "What the platform has, such as money at a bank; grows with debits.",
        "LIABILITY": "What the platform owes, such as the money of a wallet's owner; grows with credits.",
        "EQUITY": "What belongs to the platform's owners; grows with credits.",
        "REVENUE": "What the platform earns; grows with credits.",
        "EXPENSE": "What the platform spends; grows with debits.",
    },
)

enum_type(
    AccountStatus,
    "Whether money may move through an account.",
    {
        "ACTIVE": "Money moves in and out.",
        "FROZEN": "No money moves in or out, except that open holds may be voided or expire.",
        "CLOSED": "Final. Only an account with a zero balance and no open hold can be closed.",
    },
)

enum_type(
    AccountPurpose,
    "Whether an account stands for itself or serves another one.",
    {
        "MAIN": "An account of its own.",
        "HELD": "The child that holds what is set aside.",
        "STRIPE": "A child of a STRIPED account.",
    },
)

enum_type(
    BalanceTracking,
    "How an account answers contention.",
    {
        "TRACKED": "Default. The balance is kept on the row, which is locked for each posting.",
        "STRIPED": (
            "A hot account that mostly receives: credits spread over child accounts, the balance is their sum, and a "
            "debit may draw on all of them."
        ),
        "DERIVED": (
            "A hot system account: never locked, no kept balance; its balance is the last snapshot plus the entries "
            "after it."
        ),
    },
)

enum_type(
    Direction,
    "The two sides of a book.",
    {
        "DEBIT": "The left side: raises assets and expenses, lowers the others.",
        "CREDIT": "The right side: raises liabilities, equity and revenue, lowers the others.",
    },
)

enum_type(
    Scope,
    "What a token allows.",
    {
        "WALLET": "Own accounts: read, transfer, withdraw, hold.",
        "AUDIT": "Read every account and report; live feeds of the whole ledger.",
        "OPERATE": "Deposits, settlement of withdrawals, general postings, reversals, account administration.",
    },
)

enum_type(
    HoldStatus,
    "Whether money is still set aside, and what became of it.",
    {
        "OPEN": "The money is set aside.",
        "CAPTURED": "The money, or a part of it, has gone on; the rest has been given back.",
        "VOIDED": "All of the money has been given back.",
        "EXPIRED": "All of the money has been given back, because the time was over.",
    },
)

enum_type(
    WithdrawalStatus,
    "How far a withdrawal has come.",
    {
        "PENDING": "The money is held until the bank confirms or refuses.",
        "COMPLETED": "The bank has confirmed, and the money is gone.",
        "FAILED": "The bank has refused, and the money has been given back.",
    },
)

enum_type(
    SettlementOutcome,
    "What the bank says of a withdrawal.",
    {
        "COMPLETED": "The money has arrived.",
        "FAILED": "The money has not been paid, and goes back.",
    },
)

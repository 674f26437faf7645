"""The nouns of the ledger as frozen values: accounts, transactions and their legs, entries, and who asks.

Amounts inside the ledger are stored signed, credit positive and debit negative. Only `Account.from_normal_side`
turns them into what people read, where a positive number is money that the account has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Json: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""


class AccountKind(StrEnum):
    """The five kinds of double-entry bookkeeping."""

    ASSET = "ASSET"
    LIABILITY = "LIABILITY"
    EQUITY = "EQUITY"
    REVENUE = "REVENUE"
    EXPENSE = "EXPENSE"


class AccountStatus(StrEnum):
    """Whether money may move through an account."""

    ACTIVE = "ACTIVE"
    FROZEN = "FROZEN"
    CLOSED = "CLOSED"


class AccountPurpose(StrEnum):
    """Whether an account stands for itself or is a child that serves its parent."""

    MAIN = "MAIN"
    HELD = "HELD"
    STRIPE = "STRIPE"


class BalanceTracking(StrEnum):
    """How an account answers contention."""

    TRACKED = "TRACKED"
    STRIPED = "STRIPED"
    DERIVED = "DERIVED"


class Direction(StrEnum):
    """The two sides of a book."""

    DEBIT = "DEBIT"
    CREDIT = "CREDIT"


class Scope(StrEnum):
    """What a token allows its bearer to do."""

    WALLET = "WALLET"
    AUDIT = "AUDIT"
    OPERATE = "OPERATE"


CREDIT_NORMAL = frozenset({AccountKind.LIABILITY, AccountKind.EQUITY, AccountKind.REVENUE})
"""The kinds whose balance a credit raises; a debit raises the others."""


@dataclass(frozen=True, slots=True)
class Account:
    """What an account is, as it stood when it was read; what it has is a `Balance`."""

    id: UUID
    parent_id: UUID | None
    purpose: AccountPurpose
    code: str | None
    owner: str | None
    kind: AccountKind
    currency: str
    status: AccountStatus
    allow_negative: bool
    tracking: BalanceTracking
    metadata: Json | None
    created_at: datetime
    stripes: int | None = None
    """How many children a STRIPED account has."""

    @property
    def hot(self) -> bool:
        """Whether its row bears no balance and its entries are numbered by stamps, see `stamps`."""
        return self.tracking is not BalanceTracking.TRACKED

    @property
    def credit_normal(self) -> bool:
        """Whether a credit raises this account's balance."""
        return self.kind in CREDIT_NORMAL

    @property
    def normal_balance(self) -> Direction:
        """The side on which this account grows."""
        return Direction.CREDIT if self.credit_normal else Direction.DEBIT

    def from_normal_side(self, signed: int) -> int:
        """Turn a stored amount into the one people read: positive raises, or is, money of this account."""
        return signed if self.credit_normal else -signed


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has at one instant; amounts are signed, credit positive, minor units."""

    account_id: UUID
    available: int
    held: int
    """The balance of the account's held child, read in the same statement."""
    sequence: int
    """Number of the account's last entry; 0 before the first, and always 0 where the account is hot."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of a transaction, with what any of its parties may know of the account.

    A child is shown as its parent: it bears the parent's id, code and owner.
    """

    account_id: UUID
    account_code: str | None
    account_owner: str | None
    """Decides who may see the transaction; never shown to other parties."""
    purpose: AccountPurpose
    currency: str
    amount: int
    """Signed, credit positive, minor units, never zero."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A business fact: atomic, immutable, its legs summing to zero per currency. Instants are UTC."""

    id: UUID
    type: str
    caller: str
    description: str | None
    external_reference: str | None
    metadata: Json | None
    effective_at: datetime
    posted_at: datetime
    reverses_id: UUID | None
    """The transaction that this one reverses or refunds."""
    hold_id: UUID | None
    """The hold that this transaction places, captures or releases."""
    legs: tuple[Leg, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of one account's history; `amount` and `balance_after` are signed, credit positive, minor units."""

    account: Account
    """The account as people know it: a stripe's line is its parent's, a held child's is the child's own."""
    transaction_id: UUID
    sequence: int
    """1, 2, 3, ... without gaps; where the account is hot a stamp, which only orders."""
    amount: int
    balance_after: int | None
    """What the account has available right after this line; None where its tracking is DERIVED, or for a line that was
    just written on a stripe: only its readers know what the other stripes have."""
    posted_at: datetime

    @property
    def direction(self) -> Direction:
        """The side on which this line stands."""
        return Direction.CREDIT if self.amount > 0 else Direction.DEBIT


class HoldPurpose(StrEnum):
    """What money is set aside for: whatever its operator says, or its way to a bank."""

    HOLD = "HOLD"
    WITHDRAWAL = "WITHDRAWAL"


class HoldStatus(StrEnum):
    """Whether money is still set aside, and what became of it; a withdrawal's are PENDING, COMPLETED and FAILED."""

    OPEN = "OPEN"
    CAPTURED = "CAPTURED"
    VOIDED = "VOIDED"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Hold:
    """Money set aside in double entry; amounts are positive, seen from the account's normal side, minor units."""

    id: UUID
    account_id: UUID
    purpose: HoldPurpose
    currency: str
    amount: int
    captured: int
    status: HoldStatus
    expires_at: datetime | None
    description: str | None
    metadata: Json | None
    external_reference: str | None
    """Name of a withdrawal in the bank's system: its settlement's where that gave one, else the one it was asked with."""
    failure_reason: str | None
    created_at: datetime
    closed_at: datetime | None
    """When it was captured, voided or expired; UTC, as all instants."""


class MissingScopeError(Exception):
    """The caller's token bears none of the scopes that the operation needs; carries those."""

    def __init__(self, scopes: tuple[Scope, ...]) -> None:
        super().__init__(" or ".join(scopes))
        self.scopes = scopes


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the token's subject and what the token allows."""

    subject: str
    scopes: frozenset[Scope]

    def may_read(self, account: Account) -> bool:
        """Tell whether this caller may see the account's balance and history."""
        if Scope.AUDIT in self.scopes:
            return True
        return Scope.WALLET in self.scopes and account.owner == self.subject

    def may_see(self, transaction: Transaction) -> bool:
        """Tell whether this caller made the transaction or may read one of its accounts."""
        if Scope.AUDIT in self.scopes or (self.scopes and transaction.caller == self.subject):
            return True
        return Scope.WALLET in self.scopes and any(
            leg.account_owner == self.subject for leg in transaction.legs
        )

    def require(self, *scopes: Scope) -> None:
        """Raise MissingScopeError unless the token bears one of these scopes."""
        if not self.scopes.intersection(scopes):
            raise MissingScopeError(scopes)

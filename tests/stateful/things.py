"""What the model's ledger is made of. Amounts are seen from an account's normal side, positive being money that it has."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

RAISED_BY_CREDIT = ("LIABILITY", "EQUITY", "REVENUE")


class Told:
    """Lets Hypothesis print a thing as Python does, and not field by field: they refer to each other in circles."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(slots=True, eq=False, repr=False)
class Line:
    """One line of an account's history."""

    transaction: "Transaction"
    amount: int
    available: int
    """After this line."""


@dataclass(slots=True, eq=False, repr=False)
class Stand:
    """How an account stood after a transaction."""

    transaction: "Transaction"
    available: int
    held: int
    in_history: bool
    """Whether the transaction moved what the account has available, and not only what it holds."""


@dataclass(slots=True, eq=False, repr=False)
class Account(Told):
    owner: str | None
    kind: str
    currency: str
    allow_negative: bool
    tracking: str
    stripes: int | None
    status: str = "ACTIVE"
    available: int = 0
    held: int = 0
    lines: list[Line] = field(default_factory=list[Line])
    stands: list["Stand"] = field(default_factory=list["Stand"])
    """How it stood after each transaction that touched it."""
    scattered: bool = False
    """Whether a striped account has money outside its first stripe, which is the ledger's own affair: the test says so."""
    id: UUID | None = None
    """What the ledger named it; None until that is known."""

    @property
    def grows_with(self) -> str:
        return "CREDIT" if self.kind in RAISED_BY_CREDIT else "DEBIT"

    @property
    def sequence(self) -> int:
        return len(self.lines) if self.tracking == "TRACKED" else 0

    def posted_at(self, instant: datetime) -> int:
        """Return what it had at an instant, held money included."""
        return next(
            (
                stand.available + stand.held
                for stand in reversed(self.stands)
                if stand.transaction.posted_at is not None
                and stand.transaction.posted_at <= instant
            ),
            0,
        )

    def __repr__(self) -> str:
        sort = "" if self.tracking == "TRACKED" else f"{self.tracking} "
        negative = " allowed below zero" if self.allow_negative else ""
        return f"<{sort}{self.kind} {self.currency} of {self.owner or 'the platform'}{negative}, {self.available} + {self.held}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leg:
    """One side of a transaction; `held` tells that it is the account's held child that moves."""

    account: Account
    direction: str
    amount: int
    currency: str
    held: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Transaction(Told):
    type: str
    caller: str
    description: str | None
    legs: tuple[Leg, ...]
    reverses: "Transaction | None" = None
    hold: "Hold | None" = None
    taken_back: list["Transaction"] = field(default_factory=list["Transaction"])
    """The transactions that reverse or refund this one."""
    id: UUID | None = None
    posted_at: datetime | None = None

    def net(self) -> dict[Account, int]:
        """Return what each account gained by it, held money included, where that is anything."""
        gained: dict[Account, int] = {}
        for leg in self.legs:
            gain = leg.amount if leg.direction == leg.account.grows_with else -leg.amount
            gained[leg.account] = gained.get(leg.account, 0) + gain
        return {account: gain for account, gain in gained.items() if gain}

    def __repr__(self) -> str:
        sides = ", ".join(
            f"{leg.direction.lower()} {leg.amount} {'held of ' if leg.held else ''}{leg.account!r}"
            for leg in self.legs
        )
        return f"<{self.type}: {sides}>"


@dataclass(slots=True, eq=False, repr=False)
class Hold(Told):
    account: Account
    purpose: str
    amount: int
    expires: bool
    overdue: bool = False
    """Whether its time is over by the database's clock."""
    status: str = "OPEN"
    captured: int = 0
    transactions: list[Transaction] = field(default_factory=list[Transaction])
    id: UUID | None = None

    def __repr__(self) -> str:
        return f"<{self.status} {self.purpose} of {self.amount} on {self.account!r}>"


@dataclass(frozen=True, slots=True)
class Booked:
    """The request was booked, now or before."""

    transaction: Transaction
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    account: Account
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The request is refused for any one of these reasons: code and facts."""

    reasons: tuple[tuple[str, tuple[Any, ...]], ...]

    @property
    def codes(self) -> set[str]:
        return {code for code, _ in self.reasons}


Answer = Booked | Opened | Refused

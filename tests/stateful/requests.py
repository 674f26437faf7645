"""What callers ask of the ledger: the API's inputs, with the model's own objects where the API has ids."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeAlias

from tests.stateful.things import Account, Hold, Told, Transaction

Amount: TypeAlias = tuple[int, str]
"""Minor units and currency."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Request(Told):
    """A mutation with a key."""

    operation: ClassVar[str]

    caller: str
    key: str

    def meaning(self) -> dict[str, Any]:
        """Return what makes it the same request: the fields of its input that are given, but for the key."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        del given["caller"], given["key"]
        return {_api_name(name, value): value for name, value in given.items() if value is not None}

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.meaning().items())
        return f"<{self.operation} of {self.caller}, {self.key}: {given}>"

    def again(self, **changes: Any) -> Self:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpenAccount(Request):
    operation = "openAccount"

    owner: str | None
    kind: str
    currency: str
    allow_negative: bool = False
    tracking: str = "TRACKED"
    stripes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Transfer(Request):
    operation = "transfer"

    from_account: Account
    to_account: Account
    amount: Amount
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Deposit(Request):
    operation = "deposit"

    account: Account
    amount: Amount
    clearing_account: Account | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WantedLeg:
    account: Account
    direction: str
    amount: Amount
    if_sequence: int | None = None

    def __repr__(self) -> str:
        condition = "" if self.if_sequence is None else f" if at {self.if_sequence}"
        return f"{self.direction.lower()} {self.amount} {self.account!r}{condition}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PostTransaction(Request):
    operation = "postTransaction"

    type: str
    legs: tuple[WantedLeg, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlaceHold(Request):
    operation = "placeHold"

    account: Account
    amount: Amount
    expires_at: Any = None
    """An instant that is far away; the test brings it near where time is to pass."""
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CaptureHold(Request):
    operation = "captureHold"

    hold: Hold
    to_account: Account
    amount: Amount | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VoidHold(Request):
    operation = "voidHold"

    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Withdraw(Request):
    operation = "withdraw"

    account: Account
    amount: Amount
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SettleWithdrawal(Request):
    operation = "settleWithdrawal"

    withdrawal: Hold
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reverse(Request):
    operation = "reverseTransaction"

    transaction: Transaction
    reason: str = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Refund(Request):
    operation = "refundTransaction"

    transaction: Transaction
    amount: Amount
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Request):
    operation = "sweepAccount"

    account: Account


def _api_name(name: str, value: object) -> str:
    first, *others = name.split("_")
    of_an_id = "Id" if isinstance(value, Account | Hold | Transaction) else ""
    return first + "".join(other.capitalize() for other in others) + of_an_id

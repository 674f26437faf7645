"""What a step may be about: strategies that choose among the things that the machine knows at that moment.

Most steps are to succeed, so what is chosen fits together: accounts of one currency, holds that are open, transactions that
can be taken back. What doesn't fit is tried by changing a request that was sent before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from tests.stateful.model import NEVER_TAKEN_BACK, Model
from tests.stateful.things import Account, Hold, Transaction

Thing = TypeVar("Thing")
Another = TypeVar("Another")
Things = Callable[[Model], Sequence[Thing]]

CURRENCY: Final = "BRL"
OTHER_CURRENCY: Final = "JPY"

HUGE: Final = 2**63 - 20
"""So much that a little more is too much for 64 bits."""

_OTHERS: Final[Mapping[str, Sequence[Any]]] = {
    "description": (None, "another"),
    "reason": ("another",),
    "outcome": ("COMPLETED", "FAILED"),
    "type": ("another", "deposit", "Not_A_Type"),
    "owner": (None, "alice"),
    "kind": ("LIABILITY", "ASSET"),
    "currency": (CURRENCY, OTHER_CURRENCY),
    "allow_negative": (False, True),
    "tracking": ("TRACKED", "STRIPED", "DERIVED"),
    "stripes": (None, 1, 2, 3, 257),
}

shares = st.sampled_from(["some", "half", "all", "some", "half", "one too many", "huge"])
"""How much of what there is."""


def part_of(whole: int, share: str) -> int:
    sizes = {"some": 7, "half": whole // 2, "all": whole, "huge": HUGE}
    return max(sizes.get(share, whole + 1), 1)


def one(of: Things[Thing]) -> st.SearchStrategy[Thing]:
    return st.runner().flatmap(lambda machine: st.sampled_from(of(machine.model)))


def pair(
    of: Things[Thing], fitting: Callable[[Model, Thing], Sequence[Another]]
) -> st.SearchStrategy[tuple[Thing, Another]]:
    """Choose a thing and another one that fits it."""
    return st.runner().flatmap(
        lambda machine: st.sampled_from(of(machine.model)).flatmap(
            lambda thing: st.tuples(st.just(thing), st.sampled_from(fitting(machine.model, thing)))
        )
    )


def accounts(model: Model) -> list[Account]:
    return model.accounts


def wallets(model: Model) -> list[Account]:
    """The accounts that grow with credits, among which transfers go to and fro."""
    return [account for account in model.accounts if account.grows_with == "CREDIT"]


def payers(model: Model) -> list[Account]:
    """The accounts whose owner may move their money."""
    return [account for account in wallets(model) if account.owner is not None]


def holders(model: Model) -> list[Account]:
    """The accounts that can set money aside."""
    return [account for account in wallets(model) if account.tracking != "DERIVED"]


def striped(model: Model) -> list[Account]:
    return [account for account in model.accounts if account.tracking == "STRIPED"]


def with_status(*statuses: str) -> Things[Account]:
    return lambda model: [account for account in model.accounts if account.status in statuses]


def empty_or_any(model: Model) -> list[Account]:
    """The accounts that can be closed, often; and all of them, sometimes."""
    empty = [account for account in model.accounts if not account.available and not account.held]
    return [*empty, *empty, *model.accounts]


def peers(model: Model, account: Account) -> list[Account]:
    """The other accounts of its currency."""
    return [
        other
        for other in model.accounts
        if other.currency == account.currency and other is not account
    ]


def wallets_beside(model: Model, account: Account) -> list[Account]:
    return [other for other in peers(model, account) if other.grows_with == "CREDIT"]


def payees(model: Model, hold: Hold) -> list[Account]:
    return peers(model, hold.account)


def open_holds(purpose: str) -> Things[Hold]:
    return lambda model: [
        hold for hold in model.holds if hold.purpose == purpose and hold.status == "OPEN"
    ]


def expiring(model: Model) -> list[Hold]:
    return [hold for hold in model.holds if hold.expires and hold.status == "OPEN"]


def returnable(model: Model) -> list[Transaction]:
    """The transactions that can be taken back, for all that one may know without trying."""
    return [
        transaction
        for transaction in model.transactions
        if transaction.type not in NEVER_TAKEN_BACK
        and not any(each.type == "reversal" for each in transaction.taken_back)
    ]


def something_else(model: Model, name: str, value: object) -> st.SearchStrategy[Any]:
    """Choose a value for a field of a request, whether it makes sense there or not."""
    match value:
        case Account():
            others: Sequence[Any] = model.accounts
        case Hold():
            others = model.holds
        case Transaction():
            others = model.transactions
        case (int(amount), str(currency)):
            others = [
                *((amount + more, currency) for more in (1, -1, -amount, HUGE)),
                *((amount, other) for other in (CURRENCY, OTHER_CURRENCY)),
            ]
        case tuple():
            others = [value[::-1], value[1:], (*value, value[0])]
        case _:
            others = _OTHERS.get(name, [value])
    return st.sampled_from(others)

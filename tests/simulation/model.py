"""A ledger of plain dictionaries, written from what the ledger promises and from nothing of its code.

It is slow and simple: it copies all of its state before each group and takes the copy back where a member is refused.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

LARGEST = 2**63 - 1
SMALLEST = -(2**63)

RAISED_BY_CREDIT = ("LIABILITY", "EQUITY", "REVENUE")

Facts: TypeAlias = Mapping[str, Any]
"""A request as plain facts: id, caller, key, operation, meaning (what makes it the same request), and legs; each leg is
(account, amount, currency, where, owner or None, must grow with credits)."""

Answer: TypeAlias = tuple[Any, ...]
"""("posted", id), ("replayed", id), ("refused", code, where, details), ("not attempted",)."""


@dataclass(slots=True)
class Model:
    """What every account has, every entry ever made, and every key ever booked."""

    accounts: dict[Any, dict[str, Any]]
    entries: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """(account, sequence, transaction, amount, balance after)"""
    keys: dict[tuple[str, str], tuple[Any, str, Mapping[str, Any]]] = field(
        default_factory=dict[tuple[str, str], tuple[Any, str, Mapping[str, Any]]]
    )

    def post_group(self, group: Sequence[Facts]) -> list[Answer]:
        accounts, length, keys = deepcopy(self.accounts), len(self.entries), dict(self.keys)
        answers: list[Answer] = []
        for request in group:
            answer = self.post(request)
            if answer[0] == "refused" and len(group) > 1:
                self.accounts, self.keys = accounts, keys
                del self.entries[length:]
                place = len(answers)
                return [
                    answer if index == place else ("not attempted",) for index in range(len(group))
                ]
            answers.append(answer)
        return answers

    def post(self, request: Facts) -> Answer:
        known = self.keys.get((request["caller"], request["key"]))
        if known is not None:
            return self.compare(request, *known)
        for where_it_may_fail in (self.missing, self.unfit, self.overdrawn, self.overflowing):
            refusal = where_it_may_fail(request["legs"])
            if refusal is not None:
                return ("refused", *refusal)
        for account, amount, *_ in request["legs"]:
            row = self.accounts[account]
            row["balance"] += amount
            row["sequence"] += 1
            self.entries.append((account, row["sequence"], request["id"], amount, row["balance"]))
        self.keys[request["caller"], request["key"]] = (
            request["id"],
            request["operation"],
            request["meaning"],
        )
        return ("posted", request["id"])

    def compare(
        self, request: Facts, transaction: Any, operation: str, meaning: Mapping[str, Any]
    ) -> Answer:
        if operation != request["operation"]:
            differing = ["operation"]
        else:
            names = {*meaning, *request["meaning"]}
            differing = sorted(
                name for name in names if meaning.get(name) != request["meaning"].get(name)
            )
        if not differing:
            return ("replayed", transaction)
        return (
            "refused",
            "IDEMPOTENCY_CONFLICT",
            ("idempotencyKey",),
            (transaction, tuple(differing)),
        )

    def missing(self, legs: Sequence[Any]) -> Answer | None:
        for account, _, _, where, owner, grows_with_credits in legs:
            row = self.accounts.get(account)
            if (
                row is None
                or row["child"]
                or (owner is not None and row["owner"] != owner)
                or (grows_with_credits and row["kind"] not in RAISED_BY_CREDIT)
            ):
                return ("ACCOUNT_NOT_FOUND", (where,), ())
        return None

    def unfit(self, legs: Sequence[Any]) -> Answer | None:
        for account, _, currency, where, *_ in legs:
            row = self.accounts[account]
            if row["currency"] != currency:
                return ("CURRENCY_MISMATCH", ("amount", "currency"), (row["currency"], currency))
            if row["status"] != "ACTIVE":
                return (f"ACCOUNT_{row['status']}", (where,), ())
        return None

    def overflowing(self, legs: Sequence[Any]) -> Answer | None:
        balances = {account: self.accounts[account]["balance"] for account, *_ in legs}
        for account, amount, *_ in legs:
            balances[account] += amount
            if not SMALLEST <= balances[account] <= LARGEST:
                return ("AMOUNT_OVERFLOW", ("amount", "minorUnits"), ())
        return None

    def overdrawn(self, legs: Sequence[Any]) -> Answer | None:
        for account, *_ in legs:
            row = self.accounts[account]
            side = 1 if row["kind"] in RAISED_BY_CREDIT else -1
            moved = sum(amount for other, amount, *_ in legs if other == account)
            has, needs = side * row["balance"], -side * moved
            if not row["allow_negative"] and needs > has:
                details = (account, row["currency"], has, needs)
                return ("INSUFFICIENT_FUNDS", ("amount", "minorUnits"), details)
        return None

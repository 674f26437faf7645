"""Which rows a batch must lock, and the hot accounts, of which that can't be seen by their id alone.

A posting names accounts. Of a tracked one the row with that id is locked. Of a striped one a credit locks a single stripe,
chosen at random for each batch, and a debit all of them; a derived one is never kept from anybody. That an account is hot
never changes and is learnt by the first batch that names it, which then plans anew.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from app.ledger.children import held_child_id, stripe_ids
from app.ledger.model import Account, AccountPurpose, BalanceTracking
from app.ledger.requests import Gather, PostingRequest, RequestedLeg

_MOST_KNOWN: Final = 10_000


@dataclass(slots=True)
class LockPlan:
    """What a batch locks."""

    locked: set[UUID] = field(default_factory=set[UUID])
    parents: set[UUID] = field(default_factory=set[UUID])
    """Those of the locked that are hot accounts themselves, because something of them is set aside or released."""
    shared: set[UUID] = field(default_factory=set[UUID])
    """Derived accounts, which a change of their status alone waits for."""
    striped: dict[UUID, Account] = field(default_factory=dict[UUID, Account])

    @property
    def stamped(self) -> bool:
        """Whether entries will need stamps."""
        return bool(self.shared or self.striped)


class HotAccounts:
    """The hot accounts that this process has met."""

    def __init__(self) -> None:
        """Know none yet."""
        self._known: dict[UUID, Account] = {}

    def learn(self, accounts: Iterable[Account]) -> bool:
        """Remember hot accounts; tells whether there was one, so that the plan that missed it is void."""
        met = list(accounts)
        for account in met:
            self._known[account.id] = account
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return bool(met)

    def contended(self, request: PostingRequest) -> frozenset[UUID]:
        """Tell for which accounts two batches of one process would wait for each other."""
        if not self._known and request.terms is None:
            return frozenset([leg.account_id for leg in request.legs])
        ids = {leg.account_id for leg in request.legs if not self._passes_by(leg)}
        if isinstance(request.terms, Gather):
            ids.add(request.terms.account_id)
        return frozenset(ids)

    def plan(self, requests: Iterable[PostingRequest]) -> LockPlan:
        """Decide which rows to lock for these requests."""
        plan = LockPlan()
        chosen: dict[UUID, UUID] = {}
        for request in requests:
            for leg in request.legs:
                account = self._known.get(leg.account_id)
                if leg.purpose is AccountPurpose.HELD:
                    plan.locked.update((leg.account_id, held_child_id(leg.account_id)))
                    if account is not None:
                        plan.parents.add(account.id)
                elif account is None:
                    plan.locked.add(leg.account_id)
                elif account.tracking is BalanceTracking.DERIVED:
                    plan.shared.add(account.id)
                else:
                    plan.striped[account.id] = account
                    plan.locked.update(self._stripes(account, leg, chosen))
            if isinstance(request.terms, Gather):
                self._plan_gathering(plan, request.terms)
        return plan

    def _passes_by(self, leg: RequestedLeg) -> bool:
        """Whether another batch can move the leg's account at the same time."""
        account = self._known.get(leg.account_id)
        if account is None or leg.purpose is AccountPurpose.HELD:
            return False
        return account.tracking is BalanceTracking.DERIVED or not _draws_on_all(account, leg)

    def _stripes(
        self, account: Account, leg: RequestedLeg, chosen: dict[UUID, UUID]
    ) -> Iterable[UUID]:
        stripes = stripe_ids(account.id, account.stripes or 0)
        if leg.stripes:
            return [row_id for row_id, _ in leg.stripes]
        if _draws_on_all(account, leg):
            return stripes
        return (chosen.setdefault(account.id, random.choice(stripes)),)  # noqa: S311 - spreads load, hides nothing

    def _plan_gathering(self, plan: LockPlan, terms: Gather) -> None:
        account = self._known.get(terms.account_id)
        if account is None:
            plan.locked.add(terms.account_id)
        elif account.tracking is BalanceTracking.DERIVED:
            plan.shared.add(account.id)
        else:
            plan.striped[account.id] = account
            plan.locked.update(stripe_ids(account.id, account.stripes or 0))


def _draws_on_all(account: Account, leg: RequestedLeg) -> bool:
    lowers = account.from_normal_side(leg.amount.minor_units) < 0
    return lowers and not account.allow_negative

"""The decision of the ledger against a model of plain dictionaries, over many random batches.

Each example is a ledger that lives through many batches; after each, every outcome, balance, sequence and entry is compared.
The random requests are made from a seed that Hypothesis chooses, because drawing each number through it would leave time for
a hundredth of the postings; a failing example names its seed, and every smaller seed has been tried.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import event, given
from hypothesis import strategies as st

from app.ledger.errors import (
    CurrencyMismatch,
    IdempotencyConflict,
    InsufficientFunds,
    Refusal,
)
from app.ledger.idempotency import KnownKey, fingerprint
from app.ledger.model import Account, AccountKind, AccountPurpose, AccountStatus, BalanceTracking
from app.ledger.money import INT64_MAX, INT64_MIN, Money
from app.ledger.movements.deposits import DepositCommand, deposit
from app.ledger.movements.transfers import TransferCommand, transfer
from app.ledger.posting.decision import (
    Decision,
    NotAttempted,
    Outcome,
    Posted,
    Refused,
    Replay,
    decide,
)
from app.ledger.posting.standing import CallerKey, LockedAccount, Standing
from app.ledger.requests import PostingRequest, RequestedLeg
from tests.simulation.model import Answer, Facts, Model

BATCHES = 50
GROUPS_IN_A_BATCH = 24

START = datetime(2026, 1, 1, tzinfo=UTC)
CALLERS = ("alice", "bob")
CURRENCIES = ("BRL", "JPY")
NOBODY = UUID(int=999)
"""An account that does not exist."""

BALANCES = (0, 1, 50, 10_000, 2**62, INT64_MAX - 3, INT64_MAX)
AMOUNTS = (1, 2, 7, 50, 100, 5_000, 2**62, INT64_MAX - 2, INT64_MAX)


@dataclass(slots=True)
class Simulation:
    """The same ledger twice: as locked rows that the decision works on, and as the model."""

    random: random.Random
    locked: dict[UUID, LockedAccount]
    model: Model
    known: dict[CallerKey, KnownKey] = field(default_factory=dict[CallerKey, KnownKey])
    now: datetime = START
    made: int = 0
    recent: list[tuple[PostingRequest, Facts]] = field(
        default_factory=list[tuple[PostingRequest, Facts]]
    )

    @classmethod
    def from_seed(cls, seed: int) -> "Simulation":
        """Make a few accounts of every sort, some of them near the ends of 64 bits."""
        chance = random.Random(seed)
        locked: dict[UUID, LockedAccount] = {}
        rows: dict[Any, dict[str, Any]] = {}
        for number in range(1, chance.randint(4, 12)):
            kind = chance.choice([AccountKind.LIABILITY, AccountKind.LIABILITY, *AccountKind])
            child = chance.random() < 0.05
            allow_negative = chance.random() < 0.25
            account = Account(
                id=UUID(int=number),
                parent_id=UUID(int=500) if child else None,
                purpose=AccountPurpose.HELD if child else AccountPurpose.MAIN,
                code=None,
                owner=chance.choice([*CALLERS, None]),
                kind=kind,
                currency=chance.choice(["BRL", *CURRENCIES]),
                status=chance.choices(list(AccountStatus), [20, 1, 1])[0],
                allow_negative=allow_negative,
                tracking=BalanceTracking.TRACKED,
                metadata=None,
                created_at=START,
            )
            balance = chance.choice(BALANCES)
            if not account.credit_normal or (allow_negative and chance.random() < 0.5):
                balance = -balance
            sequence = chance.choice([0, 5, 2**40])
            locked[account.id] = LockedAccount(account, balance, sequence, None)
            rows[account.id] = {
                "owner": account.owner,
                "kind": kind.value,
                "currency": account.currency,
                "status": account.status.value,
                "allow_negative": allow_negative,
                "child": child,
                "balance": balance,
                "sequence": sequence,
            }
        return cls(chance, locked, Model(rows))

    # ------------------------------------------------------------ requests

    def account_id(self) -> UUID:
        if self.random.random() < 0.03:
            return NOBODY
        return self.random.choice(list(self.locked))

    def amount(self, account_id: UUID) -> int:
        """Choose an amount that often decides between having enough and not having it."""
        row = self.model.accounts.get(account_id)
        balance = abs(row["balance"]) if row is not None else 0
        near = [balance, balance + 1, balance - 1, balance // 2, balance // 3]
        chosen = self.random.choice([*near, *near, *AMOUNTS, *AMOUNTS[:5]])
        return min(max(chosen, 1), INT64_MAX)

    def key(self) -> str:
        """Choose a key, now and then one that was used before."""
        if self.made and self.random.random() < 0.08:
            return f"key {self.random.randint(1, self.made)}"
        return f"key {self.made}"

    def request(self) -> tuple[PostingRequest, Facts]:
        """Make a request of any sort, or repeat a recent one under a transaction id of its own."""
        self.made += 1
        transaction_id = UUID(int=10**6 + self.made)
        if self.recent and self.random.random() < 0.1:
            request, facts = self.random.choice(self.recent)
            legs, prints = request.legs, request.fingerprint
            again = PostingRequest(
                transaction_id, request.type, request.caller, request.key, prints, legs
            )
            return again, {**facts, "id": transaction_id}
        make = self.random.choice([self.transfer, self.transfer, self.deposit, self.legs])
        made = make(transaction_id)
        self.recent = [*self.recent[-40:], made]
        return made

    def two_accounts(self) -> tuple[UUID, UUID]:
        while True:
            one, other = self.account_id(), self.account_id()
            if one != other:
                return one, other

    def transfer(self, transaction_id: UUID) -> tuple[PostingRequest, Facts]:
        source, target = self.two_accounts()
        row = self.model.accounts.get(source)
        honest = row is not None and row["owner"] is not None and self.random.random() < 0.9
        caller = str(row["owner"]) if row is not None and honest else self.random.choice(CALLERS)
        currency = self.currency_of(source)
        amount, key = self.amount(source), self.key()
        request = transfer(
            TransferCommand(key, source, target, Money(amount, currency)), caller, transaction_id
        )
        assert isinstance(request, PostingRequest)
        return request, {
            "id": transaction_id,
            "caller": caller,
            "key": key,
            "operation": "transfer",
            "meaning": {
                "fromAccountId": source,
                "toAccountId": target,
                "amount": (amount, currency),
            },
            "legs": [
                (source, -amount, currency, "fromAccountId", caller, True),
                (target, amount, currency, "toAccountId", None, True),
            ],
        }

    def deposit(self, transaction_id: UUID) -> tuple[PostingRequest, Facts]:
        clearing, target = self.two_accounts()
        currency, amount, key = self.currency_of(target), self.amount(target), self.key()
        caller = self.random.choice(CALLERS)
        request = deposit(
            DepositCommand(key, target, clearing, Money(amount, currency)), caller, transaction_id
        )
        assert isinstance(request, PostingRequest)
        return request, {
            "id": transaction_id,
            "caller": caller,
            "key": key,
            "operation": "deposit",
            "meaning": {
                "accountId": target,
                "clearingAccountId": clearing,
                "amount": (amount, currency),
            },
            "legs": [
                (clearing, -amount, currency, "clearingAccountId", None, False),
                (target, amount, currency, "accountId", None, False),
            ],
        }

    def legs(self, transaction_id: UUID) -> tuple[PostingRequest, Facts]:
        """Make a posting of several legs, which may name an account twice and use both currencies."""
        legs: list[tuple[UUID, int, str, str, None, bool]] = []
        for pair in range(self.random.randint(1, 3)):
            one, other = self.account_id(), self.account_id()
            currency = self.currency_of(one)
            amount = self.amount(one)
            legs.append((one, -amount, currency, f"legs.{2 * pair}", None, False))
            legs.append((other, amount, currency, f"legs.{2 * pair + 1}", None, False))
        if self.random.random() < 0.3:
            self.random.shuffle(legs)
        key, caller = self.key(), self.random.choice(CALLERS)
        meaning = {f"leg{number}": f"{leg[0]} {leg[1]} {leg[2]}" for number, leg in enumerate(legs)}
        request = PostingRequest(
            id=transaction_id,
            type="posting",
            caller=caller,
            key=key,
            fingerprint=fingerprint("postTransaction", meaning),
            legs=tuple(
                RequestedLeg(account, Money(amount, currency), (where,), ("amount", "minorUnits"))
                for account, amount, currency, where, *_ in legs
            ),
        )
        return request, {
            "id": transaction_id,
            "caller": caller,
            "key": key,
            "operation": "postTransaction",
            "meaning": meaning,
            "legs": legs,
        }

    def currency_of(self, account_id: UUID) -> str:
        row = self.model.accounts.get(account_id)
        if row is None or self.random.random() < 0.04:
            return self.random.choice(CURRENCIES)
        return str(row["currency"])

    def batch(self) -> Iterator[list[tuple[PostingRequest, Facts]]]:
        for _ in range(self.random.randint(1, GROUPS_IN_A_BATCH)):
            length = self.random.randint(2, 4) if self.random.random() < 0.2 else 1
            yield [self.request() for _ in range(length)]

    # ------------------------------------------------------------ one batch

    def step(self) -> int:
        """Decide one batch both ways, compare all of it, and go on from there; return how much was booked."""
        self.now += timedelta(seconds=self.random.randint(-5, 60))
        groups = list(self.batch())
        known_before = {key: booked[0] for key, booked in self.model.keys.items()}
        expected = [self.model.post_group([facts for _, facts in group]) for group in groups]
        decision = decide(
            [tuple(request for request, _ in group) for group in groups],
            Standing(self.now, self.locked, self.known),
        )
        answers = [
            [answer_of(outcome, known_before) for outcome in group] for group in decision.outcomes
        ]
        assert answers == expected
        self.check_rows(decision)
        self.take_over(decision)
        return len(decision.bookings)

    def check_rows(self, decision: Decision) -> None:
        written = [
            (
                entry.account.id,
                entry.sequence,
                entry.transaction_id,
                entry.amount,
                entry.balance_after,
            )
            for booking in decision.bookings
            for entry in booking.posted.entries
        ]
        assert written == self.model.entries
        self.model.entries.clear()
        for booking in decision.bookings:
            sums: dict[str, int] = {}
            for side in booking.posted.transaction.legs:
                sums[side.currency] = sums.get(side.currency, 0) + side.amount
            assert not any(sums.values())
        earliest = [one.posted_at for one in self.locked.values() if one.posted_at is not None]
        assert decision.posted_at == max([self.now, *earliest])

    def take_over(self, decision: Decision) -> None:
        """Apply the decision's own rows, so that an error in them would show in the next batch."""
        for account_id, (balance, sequence) in decision.moved.items():
            account = self.locked[account_id].account
            self.locked[account_id] = LockedAccount(account, balance, sequence, decision.posted_at)
        for booking in decision.bookings:
            request = booking.request
            assert (request.caller, request.key) not in self.known
            self.known[request.caller, request.key] = KnownKey(
                request.fingerprint, request.id, None
            )
        assert {
            account_id: (one.balance, one.sequence) for account_id, one in self.locked.items()
        } == {
            account_id: (row["balance"], row["sequence"])
            for account_id, row in self.model.accounts.items()
        }
        for one in self.locked.values():
            assert INT64_MIN <= one.balance <= INT64_MAX
            assert one.account.allow_negative or one.account.from_normal_side(one.balance) >= 0


def answer_of(outcome: Outcome, known_before: Mapping[CallerKey, Any]) -> Answer:
    """Put an outcome into the words of the model."""
    match outcome:
        case Posted(transaction, entries, replayed):
            assert [entry.amount for entry in entries] == [leg.amount for leg in transaction.legs]
            return ("replayed" if replayed else "posted", transaction.id)
        case Replay(known):
            assert known.transaction_id in known_before.values()
            return ("replayed", known.transaction_id)
        case Refused(refusal):
            return ("refused", refusal.code.value, refusal.path, details_of(refusal))
        case NotAttempted():
            return ("not attempted",)


def details_of(refusal: Refusal) -> tuple[Any, ...]:
    match refusal:
        case InsufficientFunds():
            return (refusal.account_id, refusal.currency, refusal.available, refusal.required)
        case IdempotencyConflict():
            return (refusal.transaction_id, refusal.differing_fields)
        case CurrencyMismatch():
            return (refusal.account_currency, refusal.currency)
        case _:
            return ()


@given(st.integers(0, 2**32))
def test_the_decision_agrees_with_the_model(seed: int) -> None:
    simulation = Simulation.from_seed(seed)
    booked = sum(simulation.step() for _ in range(BATCHES))
    event(f"{booked // 50 * 50} or more postings booked")


def test_the_random_requests_meet_every_outcome() -> None:
    """A simulation that never overflows or conflicts would prove nothing about it."""
    met: set[Any] = set()

    class Noting(Model):
        def post_group(self, group: Sequence[Facts]) -> list[Answer]:
            answers = super().post_group(group)
            met.update(answer[1] if answer[0] == "refused" else answer[0] for answer in answers)
            return answers

    for seed in range(10):
        simulation = Simulation.from_seed(seed)
        simulation.model = Noting(simulation.model.accounts)
        for _ in range(BATCHES):
            simulation.step()
    assert met == {
        "posted",
        "replayed",
        "not attempted",
        "ACCOUNT_NOT_FOUND",
        "CURRENCY_MISMATCH",
        "ACCOUNT_FROZEN",
        "ACCOUNT_CLOSED",
        "AMOUNT_OVERFLOW",
        "INSUFFICIENT_FUNDS",
        "IDEMPOTENCY_CONFLICT",
    }

"""The whole ledger as plain objects, written from what its contract promises and from nothing of its code.

Where a request breaks several rules at once, the contract leaves open which of them is named, but for this order: what
the request says of itself; its key; which accounts there are; how they and what is to be ended or taken back stand; whether
the money is there; whether it would be too much. So a refusal is a set of reasons, all of one of these ranks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.stateful.requests import (
    CaptureHold,
    Deposit,
    OpenAccount,
    PlaceHold,
    PostTransaction,
    Refund,
    Request,
    Reverse,
    SettleWithdrawal,
    Sweep,
    Transfer,
    VoidHold,
    Withdraw,
)
from tests.stateful.things import (
    Account,
    Answer,
    Booked,
    Hold,
    Leg,
    Line,
    Opened,
    Refused,
    Stand,
    Transaction,
)

STRIPES: Final = 16
"""How many children a striped account has where nobody says."""

LARGEST: Final = 2**63 - 1
SMALLEST: Final = -(2**63)
OPERATOR: Final = "operator"
LEDGER: Final = ""
"""Who lets holds expire."""

OTHER: Final = {"DEBIT": "CREDIT", "CREDIT": "DEBIT"}
NEVER_TAKEN_BACK: Final = {"hold", "release", "withdrawal", "sweep", "reversal", "refund"}
BUILT_IN: Final = {
    *("transfer", "deposit", "withdrawal", "hold", "capture"),
    *("release", "reversal", "refund", "sweep", "opening"),
}

LARGEST_CLEAR: Final = 2**55
"""More than this isn't tried on a hot account, of which see UnclearError."""

Reason: TypeAlias = tuple[str, tuple[Any, ...]]
"""Code and facts."""


class UnclearError(Exception):
    """A hot account might leave 64 bits, and since nobody locks all of it, the ledger promises no answer to that."""


def reason(code: str, *facts: Any) -> Reason:
    return code, facts


@dataclass(slots=True)
class Conditions:
    """What must be true for a posting beside its legs, and what the legs are allowed."""

    owner_of: Mapping[Account, str] = field(default_factory=dict[Account, str])
    """Accounts that must be this subject's."""
    wallets_only: bool = False
    """Whether all accounts must be of a kind that grows with credits."""
    hold: bool = False
    """Whether money is set aside, which not every account can do."""
    even_frozen: bool = False
    reasons: Sequence[Reason] = ()
    """Why it is refused as things stand, apart from its legs."""
    sequences: Sequence[tuple[Account, int]] = ()


@dataclass(slots=True)
class Model:
    accounts: list[Account] = field(default_factory=list[Account])
    transactions: list[Transaction] = field(default_factory=list[Transaction])
    holds: list[Hold] = field(default_factory=list[Hold])
    """Withdrawals are among them."""
    keys: dict[tuple[str, str], tuple[Request, Booked | Opened]] = field(
        default_factory=dict[tuple[str, str], tuple[Request, Booked | Opened]]
    )
    clearing: dict[str, Account] = field(default_factory=dict[str, Account])
    """The platform's clearing account of each currency, opened on first use."""

    def answer(self, request: Request) -> Answer:
        """Carry a request out, or say why not."""
        answers: dict[type[Request], Callable[[Any], Answer]] = {
            OpenAccount: self.open_account,
            Transfer: self.transfer,
            Deposit: self.deposit,
            PostTransaction: self.post_transaction,
            PlaceHold: self.place_hold,
            CaptureHold: self.capture_hold,
            VoidHold: self.void_hold,
            Withdraw: self.withdraw,
            SettleWithdrawal: self.settle_withdrawal,
            Reverse: self.reverse,
            Refund: self.refund,
            Sweep: self.sweep,
        }
        return answers[type(request)](request)

    # ------------------------------------------------------------ accounts

    def open_account(self, request: OpenAccount) -> Answer:
        striped = request.tracking == "STRIPED"
        if not striped and request.stripes is not None:
            return no([reason("INVALID_INPUT")])
        if striped and request.stripes is not None and not 2 <= request.stripes <= 256:
            return no([reason("INVALID_INPUT")])
        if request.tracking == "DERIVED" and not request.allow_negative:
            return no([reason("INVALID_INPUT")])
        if striped and request.stripes is None:
            request = request.again(stripes=STRIPES)
        known = self.replay(request)
        if known is not None:
            return known
        account = Account(
            owner=request.owner,
            kind=request.kind,
            currency=request.currency,
            allow_negative=request.allow_negative,
            tracking=request.tracking,
            stripes=request.stripes,
        )
        self.accounts.append(account)
        return self.remember(request, Opened(account))

    def set_status(self, account: Account, status: str) -> Refused | None:
        """Change an account's status; None means that it was done, or that there was nothing to do."""
        if account.status == status:
            return None
        if account.status == "CLOSED":
            return no([reason("ACCOUNT_CLOSED")])
        if status == "CLOSED" and account in self.clearing.values():
            return no([reason("INVALID_INPUT")])
        if status == "CLOSED" and (account.available or self.open_holds(account)):
            return no([reason("ACCOUNT_NOT_EMPTY")])
        account.status = status
        return None

    def clearing_account(self, currency: str) -> Account:
        if currency not in self.clearing:
            account = Account(None, "ASSET", currency, True, "TRACKED", None)
            self.clearing[currency] = account
            self.accounts.append(account)
        return self.clearing[currency]

    # ------------------------------------------------------------ movements

    def transfer(self, request: Transfer) -> Answer:
        source, target = request.from_account, request.to_account
        amount, currency = request.amount
        wrong = wrong_amount(request.amount)
        if source is target:
            wrong.append(reason("SAME_ACCOUNT"))
        legs = (
            Leg(source, "DEBIT", amount, currency),
            Leg(target, "CREDIT", amount, currency),
        )
        conditions = Conditions(owner_of={source: request.caller}, wallets_only=True)
        return refused(wrong) or self.book(request, "transfer", legs, conditions)

    def deposit(self, request: Deposit) -> Answer:
        amount, currency = request.amount
        wrong = wrong_amount(request.amount)
        clearing = request.clearing_account
        if clearing is None:
            if wrong:
                return no(wrong)
            clearing = self.clearing_account(currency)
            request = request.again(clearing_account=clearing)
        if clearing is request.account:
            wrong.append(reason("SAME_ACCOUNT"))
        legs = (
            Leg(clearing, "DEBIT", amount, currency),
            Leg(request.account, "CREDIT", amount, currency),
        )
        return refused(wrong) or self.book(request, "deposit", legs, Conditions())

    def post_transaction(self, request: PostTransaction) -> Answer:
        wrong = [each for leg in request.legs for each in wrong_amount(leg.amount)]
        if not 2 <= len(request.legs) <= 200 or not may_be_called(request.type):
            wrong.append(reason("INVALID_INPUT"))
        sides = {(leg.account, leg.direction) for leg in request.legs}
        if len(sides) > len({account for account, _ in sides}):
            wrong.append(reason("SAME_ACCOUNT"))
        for currency in {leg.amount[1] for leg in request.legs}:
            debits, credits_ = (
                sum(
                    leg.amount[0]
                    for leg in request.legs
                    if leg.amount[1] == currency and leg.direction == direction
                )
                for direction in ("DEBIT", "CREDIT")
            )
            if debits != credits_:
                wrong.append(reason("UNBALANCED"))
        conditions = Conditions(
            sequences=[
                (leg.account, leg.if_sequence)
                for leg in request.legs
                if leg.if_sequence is not None
            ]
        )
        legs = tuple(Leg(leg.account, leg.direction, *leg.amount) for leg in request.legs)
        return refused(wrong) or self.book(request, request.type, legs, conditions)

    def sweep(self, request: Sweep) -> Answer:
        """Gather the children of a striped account; nothing that its owner can see moves."""
        conditions = Conditions()
        if request.account.tracking != "STRIPED" or not request.account.scattered:
            conditions.reasons = [reason("INVALID_INPUT")]
        currency = request.account.currency
        legs = (
            Leg(request.account, "DEBIT", 0, currency),
            Leg(request.account, "CREDIT", 0, currency),
        )
        return self.book(request, "sweep", legs, conditions)

    # ------------------------------------------------------------ holds and withdrawals

    def place_hold(self, request: PlaceHold) -> Answer:
        conditions = Conditions(hold=True)
        if request.caller != OPERATOR:
            conditions.owner_of = {request.account: request.caller}
        hold = Hold(request.account, "HOLD", request.amount[0], request.expires_at is not None)
        return self.set_aside(request, request.amount, hold, conditions)

    def withdraw(self, request: Withdraw) -> Answer:
        hold = Hold(request.account, "WITHDRAWAL", request.amount[0], expires=False)
        conditions = Conditions(hold=True, owner_of={request.account: request.caller})
        return self.set_aside(request, request.amount, hold, conditions)

    def set_aside(
        self, request: Request, money: tuple[int, str], hold: Hold, conditions: Conditions
    ) -> Answer:
        legs = (
            Leg(hold.account, "DEBIT", *money),
            Leg(hold.account, "CREDIT", *money, held=True),
        )
        answer = refused(wrong_amount(money)) or self.book(
            request, "hold", legs, conditions, hold=hold
        )
        if isinstance(answer, Booked) and not answer.replayed:
            self.holds.append(hold)
        return answer

    def capture_hold(self, request: CaptureHold) -> Answer:
        hold, target = request.hold, request.to_account
        if hold.purpose != "HOLD":
            return no([reason("HOLD_NOT_FOUND")])
        amount, currency = request.amount or (hold.amount, hold.account.currency)
        request = request.again(amount=(amount, currency))
        wrong = wrong_amount((amount, currency))
        if currency != hold.account.currency:
            wrong.append(reason("CURRENCY_MISMATCH"))
        elif amount > hold.amount:
            wrong.append(reason("CAPTURE_EXCEEDS_HOLD"))
        if target is hold.account:
            wrong.append(reason("SAME_ACCOUNT"))
        conditions = Conditions(reasons=not_open(hold, "HOLD_NOT_OPEN", in_time=True))
        legs = [
            Leg(hold.account, "DEBIT", hold.amount, currency, held=True),
            Leg(target, "CREDIT", amount, currency),
        ]
        if amount < hold.amount:
            legs.append(Leg(hold.account, "CREDIT", hold.amount - amount, currency))
        return refused(wrong) or self.end(
            request, "capture", legs, conditions, hold=hold, ending=("CAPTURED", amount)
        )

    def void_hold(self, request: VoidHold) -> Answer:
        hold = request.hold
        if hold.purpose != "HOLD":
            return no([reason("HOLD_NOT_FOUND")])
        return self.release(request, hold, not_open(hold, "HOLD_NOT_OPEN"))

    def settle_withdrawal(self, request: SettleWithdrawal) -> Answer:
        hold = request.withdrawal
        if hold.purpose != "WITHDRAWAL":
            return no([reason("WITHDRAWAL_NOT_FOUND")])
        reasons = not_open(hold, "WITHDRAWAL_NOT_PENDING")
        if request.outcome == "FAILED":
            return self.release(request, hold, reasons)
        currency = hold.account.currency
        legs = [
            Leg(hold.account, "DEBIT", hold.amount, currency, held=True),
            Leg(self.clearing_account(currency), "CREDIT", hold.amount, currency),
        ]
        ending = ("CAPTURED", hold.amount)
        conditions = Conditions(reasons=reasons)
        return self.end(request, "withdrawal", legs, conditions, hold=hold, ending=ending)

    def expire_holds(self) -> list[Hold]:
        """Release every hold whose time is over, and tell which they were."""
        due = [hold for hold in self.holds if hold.status == "OPEN" and hold.overdue]
        for hold in due:
            self.apply("release", LEDGER, None, self.given_back(hold), hold=hold)
            hold.status = "EXPIRED"
        return due

    def release(self, request: Request, hold: Hold, reasons: Sequence[Reason]) -> Answer:
        conditions = Conditions(reasons=reasons, even_frozen=True)
        legs = self.given_back(hold)
        return self.end(request, "release", legs, conditions, hold=hold, ending=("VOIDED", 0))

    def given_back(self, hold: Hold) -> list[Leg]:
        currency = hold.account.currency
        return [
            Leg(hold.account, "DEBIT", hold.amount, currency, held=True),
            Leg(hold.account, "CREDIT", hold.amount, currency),
        ]

    def end(
        self,
        request: Request,
        kind: str,
        legs: Sequence[Leg],
        conditions: Conditions,
        *,
        hold: Hold,
        ending: tuple[str, int],
    ) -> Answer:
        """Book what ends a hold, and note its new status and how much was captured."""
        answer = self.book(request, kind, legs, conditions, hold=hold)
        if isinstance(answer, Booked) and not answer.replayed:
            hold.status, hold.captured = ending
        return answer

    def open_holds(self, account: Account) -> list[Hold]:
        return [hold for hold in self.holds if hold.account is account and hold.status == "OPEN"]

    # ------------------------------------------------------------ taking back

    def reverse(self, request: Reverse) -> Answer:
        original = request.transaction
        wrong = [reason("NOT_REVERSIBLE")] if original.type in NEVER_TAKEN_BACK else []
        conditions = Conditions()
        if original.taken_back:
            conditions.reasons = [reason("ALREADY_REVERSED")]
        if original.type == "capture":
            legs = back(original.net().items(), original.legs[0].currency)
        else:
            legs = [
                Leg(leg.account, OTHER[leg.direction], leg.amount, leg.currency)
                for leg in original.legs
            ]
        return refused(wrong) or self.book(request, "reversal", legs, conditions, original=original)

    def refund(self, request: Refund) -> Answer:
        original, (amount, currency) = request.transaction, request.amount
        wrong = wrong_amount(request.amount)
        net = original.net()
        currencies = {leg.currency for leg in original.legs}
        if original.type in NEVER_TAKEN_BACK or len(net) != 2 or len(currencies) != 1:
            wrong.append(reason("NOT_REVERSIBLE"))
        elif currencies != {currency}:
            wrong.append(reason("CURRENCY_MISMATCH"))
        if wrong:
            return no(wrong)
        moved = abs(next(iter(net.values())))
        given_back = sum(abs(next(iter(refund.net().values()))) for refund in original.taken_back)
        conditions = Conditions()
        if any(each.type == "reversal" for each in original.taken_back):
            conditions.reasons = [reason("ALREADY_REVERSED")]
        elif given_back + amount > moved:
            conditions.reasons = [reason("REFUND_EXCEEDS_ORIGINAL", moved - given_back)]
        parts = [(account, amount if gain > 0 else -amount) for account, gain in net.items()]
        return self.book(request, "refund", back(parts, currency), conditions, original=original)

    # ------------------------------------------------------------ booking

    def book(
        self,
        request: Request,
        kind: str,
        legs: Sequence[Leg],
        conditions: Conditions,
        *,
        hold: Hold | None = None,
        original: Transaction | None = None,
    ) -> Answer:
        if any(leg.account.tracking != "TRACKED" and leg.amount > LARGEST_CLEAR for leg in legs):
            raise UnclearError
        known = self.replay(request)
        if known is not None:
            return known
        for reasons in (
            self.missing(legs, conditions),
            [*conditions.reasons, *self.unfit(legs, conditions)],
            self.overdrawn(legs),
            self.overflowing(legs),
        ):
            if reasons:
                return no(reasons)
        description = getattr(request, "description", None) or getattr(request, "reason", None)
        transaction = self.apply(
            kind, request.caller, description, legs, hold=hold, original=original
        )
        return self.remember(request, Booked(transaction))

    def replay(self, request: Request) -> Answer | None:
        """Answer a request whose key is known; None where it is free."""
        known = self.keys.get((request.caller, request.key))
        if known is None:
            return None
        first, answer = known
        if first.operation != request.operation:
            differing = ["operation"]
        else:
            before, now = first.meaning(), request.meaning()
            differing = sorted(name for name in before | now if before.get(name) != now.get(name))
        if differing:
            transaction = answer.transaction if isinstance(answer, Booked) else None
            return no([reason("IDEMPOTENCY_CONFLICT", transaction, tuple(differing))])
        if isinstance(answer, Booked):
            return Booked(answer.transaction, replayed=True)
        return Opened(answer.account, replayed=True)

    def remember(self, request: Request, answer: Booked | Opened) -> Answer:
        self.keys[request.caller, request.key] = (request, answer)
        return answer

    def apply(
        self,
        kind: str,
        caller: str,
        description: str | None,
        legs: Sequence[Leg],
        *,
        hold: Hold | None = None,
        original: Transaction | None = None,
    ) -> Transaction:
        transaction = Transaction(kind, caller, description, tuple(legs), original, hold)
        self.transactions.append(transaction)
        if original is not None:
            original.taken_back.append(transaction)
        if hold is not None:
            hold.transactions.append(transaction)
        for leg in legs:
            account = leg.account
            gain = leg.amount if leg.direction == account.grows_with else -leg.amount
            if leg.held:
                account.held += gain
            elif gain:
                account.available += gain
                account.lines.append(Line(transaction, gain, account.available))
        for account in {leg.account: None for leg in legs}:
            moved = any(leg.account is account and not leg.held for leg in legs)
            account.stands.append(Stand(transaction, account.available, account.held, moved))
        return transaction

    # ------------------------------------------------------------ refusing

    def missing(self, legs: Sequence[Leg], conditions: Conditions) -> list[Reason]:
        reasons: list[Reason] = []
        for account in {leg.account: None for leg in legs}:
            owner = conditions.owner_of.get(account)
            wallet = account.grows_with == "CREDIT"
            if (
                (owner is not None and account.owner != owner)
                or (conditions.wallets_only and not wallet)
                or (conditions.hold and not wallet)
            ):
                reasons.append(reason("ACCOUNT_NOT_FOUND"))
        return reasons

    def unfit(self, legs: Sequence[Leg], conditions: Conditions) -> list[Reason]:
        reasons: list[Reason] = []
        for leg in legs:
            if leg.account.currency != leg.currency:
                reasons.append(reason("CURRENCY_MISMATCH"))
            if leg.account.status == "CLOSED":
                reasons.append(reason("ACCOUNT_CLOSED"))
            if leg.account.status == "FROZEN" and not conditions.even_frozen:
                reasons.append(reason("ACCOUNT_FROZEN"))
            if leg.account.tracking == "DERIVED" and conditions.hold:
                reasons.append(reason("INVALID_INPUT"))
        for account, expected in conditions.sequences:
            if account.tracking != "TRACKED":
                reasons.append(reason("INVALID_INPUT"))
            elif account.sequence != expected:
                reasons.append(reason("SEQUENCE_MISMATCH", expected, account.sequence))
        return reasons

    def overdrawn(self, legs: Sequence[Leg]) -> list[Reason]:
        return [
            reason("INSUFFICIENT_FUNDS", account, account.available, account.available - after)
            for account, after in self.afterwards(legs, held=False).items()
            if after < 0 and not account.allow_negative
        ]

    def overflowing(self, legs: Sequence[Leg]) -> list[Reason]:
        return [
            reason("AMOUNT_OVERFLOW")
            for held in (False, True)
            for after in self.afterwards(legs, held=held).values()
            if not SMALLEST <= after <= LARGEST
        ]

    def afterwards(self, legs: Sequence[Leg], *, held: bool) -> dict[Account, int]:
        """Return what the accounts that the legs touch would have, available or held."""
        after: dict[Account, int] = {}
        for leg in legs:
            if leg.held == held:
                account = leg.account
                has = account.held if held else account.available
                gain = leg.amount if leg.direction == account.grows_with else -leg.amount
                after[account] = after.get(account, has) + gain
        return after


def no(reasons: Iterable[Reason]) -> Refused:
    return Refused(tuple(reasons))


def refused(reasons: Sequence[Reason]) -> Refused | None:
    """Make a refusal of the reasons; None where there are none."""
    return no(reasons) if reasons else None


def may_be_called(kind: str) -> bool:
    """Tell whether a partner's transaction may bear this name: lower case words joined by "_", and not a built-in one."""
    return kind not in BUILT_IN and all(
        word.isalnum() and word.islower() for word in kind.split("_")
    )


def wrong_amount(money: tuple[int, str]) -> list[Reason]:
    if money[0] <= 0:
        return [reason("INVALID_AMOUNT")]
    return [reason("AMOUNT_OVERFLOW")] if money[0] > LARGEST else []


def not_open(hold: Hold, code: str, *, in_time: bool = False) -> list[Reason]:
    """Tell why a hold can't be ended; who comes too late is told so, whether it was released already or not."""
    if in_time and (hold.status == "EXPIRED" or (hold.status == "OPEN" and hold.overdue)):
        return [reason("HOLD_EXPIRED")]
    return [] if hold.status == "OPEN" else [reason(code)]


def back(gains: Iterable[tuple[Account, int]], currency: str) -> list[Leg]:
    """Make the legs that take back what accounts gained."""
    legs: list[Leg] = []
    for account, gain in gains:
        direction = OTHER[account.grows_with] if gain > 0 else account.grows_with
        legs.append(Leg(account, direction, abs(gain), currency))
    return legs

"""A machine of random steps: each request goes to the model and to the real ledger, which must answer alike.

After each step all balances, holds and statuses are compared, and the books are audited as a whole.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.ledger.posting import Refused
from tests.stateful import requests
from tests.stateful.agreement import assert_agreed, assert_history
from tests.stateful.model import OPERATOR, Model
from tests.stateful.real import FAR_AWAY, Databases
from tests.stateful.things import Account, Hold, Transaction

Thing = TypeVar("Thing")

OWNERS: Final = ("alice", "bob")
CURRENCY: Final = "BRL"
OTHER_CURRENCY: Final = "JPY"
HUGE: Final = 2**63 - 20


def one_of(things: Callable[["LedgerMachine"], Sequence[Thing]]) -> st.SearchStrategy[Thing]:
    """Choose one of the things that the machine knows at that moment."""
    return st.runner().flatmap(lambda machine: st.sampled_from(things(machine)))


any_account = one_of(lambda machine: machine.model.accounts)
any_wallet = one_of(lambda machine: machine.wallets)
any_payer = one_of(lambda machine: machine.payers)
any_hold = one_of(lambda machine: machine.some_holds("HOLD"))
any_withdrawal = one_of(lambda machine: machine.some_holds("WITHDRAWAL"))
any_transaction = one_of(lambda machine: machine.model.transactions)
any_sent = one_of(lambda machine: machine.sent)

shares = st.sampled_from(["one", "some", "half", "all", "one too many", "some", "half", "huge"])
"""How much of what there is; more than there is now and then, and seldom so much that two of it are too much for 64 bits."""

mostly_right = st.sampled_from([True] * 9 + [False])


class LedgerMachine(RuleBasedStateMachine):
    """Runs beside a ledger on a database of its own for each example."""

    databases: ClassVar[Databases]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.real = self.databases.open_ledger()
        self.sent: list[requests.Request] = []
        self.keys = 0

    def teardown(self) -> None:
        self.real.close()

    @property
    def wallets(self) -> list[Account]:
        """The accounts that can pay and hold."""
        return [account for account in self.model.accounts if account.grows_with == "CREDIT"]

    @property
    def payers(self) -> list[Account]:
        """The accounts whose owner may move their money."""
        return [account for account in self.wallets if account.owner is not None]

    def some_holds(self, purpose: str) -> list[Hold]:
        """Return all holds of a purpose, and those that are open more than once, to be chosen more often."""
        holds = [hold for hold in self.model.holds if hold.purpose == purpose]
        return [*holds, *(hold for hold in holds * 2 if hold.status == "OPEN")]

    @property
    def striped(self) -> list[Account]:
        return [account for account in self.model.accounts if account.tracking == "STRIPED"]

    # ------------------------------------------------------------ sending

    def new_key(self) -> str:
        self.keys += 1
        return f"key {self.keys}"

    def send(self, request: requests.Request) -> None:
        for account in self.striped:
            account.scattered = self.real.is_scattered(account)
        expected = self.model.answer(request)
        answer = self.real.send(request)
        for currency, clearing in self.model.clearing.items():
            clearing.id = clearing.id or self.real.clearing_id(currency)
        self.sent.append(request)
        event(_name_of(request, answer))
        assert_agreed(request, expected, answer)

    def money(self, account: Account, share: str, *, right: bool = True) -> tuple[int, str]:
        """Make an amount out of what an account has, in a currency that may be wrong."""
        return self.part(account.available, share), account.currency if right else OTHER_CURRENCY

    def part(self, whole: int, share: str) -> int:
        sizes = {"one": 1, "some": 7, "half": whole // 2, "all": whole, "huge": HUGE}
        return max(sizes.get(share, whole + 1), 1)

    def owner_of(self, account: Account, *, right: bool) -> str:
        """Name who may move the account's money, or somebody who may not."""
        if right:
            return account.owner or OPERATOR
        return next(owner for owner in OWNERS if owner != account.owner)

    # ------------------------------------------------------------ accounts

    @initialize()
    def open_a_few_accounts(self) -> None:
        """Begin with some money in accounts of every tracking, so that most steps have something to do."""
        self.open(owner="alice", kind="LIABILITY")
        self.open(owner="bob", kind="LIABILITY")
        self.open(owner="alice", kind="LIABILITY", tracking="STRIPED", stripes=3)
        self.open(owner=None, kind="REVENUE", tracking="DERIVED", allow_negative=True)
        self.open(owner=None, kind="EXPENSE")
        self.open(owner="bob", kind="LIABILITY", currency=OTHER_CURRENCY)
        for account in self.wallets:
            for _ in range(2):
                self.deposit(account, "some", right=True)

    @rule(
        owner=st.sampled_from([*OWNERS, None]),
        kind=st.sampled_from(["LIABILITY", "LIABILITY", "ASSET", "EQUITY", "REVENUE", "EXPENSE"]),
        currency=st.sampled_from([CURRENCY, CURRENCY, CURRENCY, OTHER_CURRENCY]),
        allow_negative=st.booleans(),
        tracking=st.sampled_from(["TRACKED", "TRACKED", "STRIPED", "DERIVED"]),
        stripes=st.sampled_from([None, None, 2, 5, 1]),
    )
    def open_account(self, **sort: Any) -> None:
        self.open(**sort)

    def open(self, **sort: Any) -> None:
        given: dict[str, Any] = {"currency": CURRENCY, **sort}
        self.send(requests.OpenAccount(caller=OPERATOR, key=self.new_key(), **given))

    @rule(account=any_account, status=st.sampled_from(["FROZEN", "ACTIVE", "ACTIVE", "CLOSED"]))
    def set_status(self, account: Account, status: str) -> None:
        refused = self.model.set_status(account, status)
        answer = self.real.set_status(account, status)
        if refused is None:
            assert not isinstance(answer, Refused), answer
            assert answer.status == status
        else:
            assert isinstance(answer, Refused), (refused, answer)
            assert answer.refusal.code in refused.codes

    # ------------------------------------------------------------ movements

    @rule(account=any_account, share=shares, right=mostly_right)
    def deposit(self, account: Account, share: str, *, right: bool) -> None:
        money = self.money(account, share, right=right)
        self.send(
            requests.Deposit(caller=OPERATOR, key=self.new_key(), account=account, amount=money)
        )

    @rule(account=any_account, clearing=any_account, share=shares)
    def deposit_from(self, account: Account, clearing: Account, share: str) -> None:
        self.send(
            requests.Deposit(
                caller=OPERATOR,
                key=self.new_key(),
                account=account,
                clearing_account=clearing,
                amount=self.money(account, share),
            )
        )

    @rule(
        source=any_payer,
        to=st.one_of(any_wallet, any_wallet, any_account),
        share=shares,
        own=mostly_right,
        right=mostly_right,
    )
    def transfer(self, source: Account, to: Account, share: str, *, own: bool, right: bool) -> None:
        self.send(
            requests.Transfer(
                caller=self.owner_of(source, right=own),
                key=self.new_key(),
                from_account=source,
                to_account=to,
                amount=self.money(source, share, right=right),
            )
        )

    @rule(
        source=any_account,
        parts=st.lists(st.tuples(any_account, st.integers(1, 9)), min_size=1, max_size=4),
        sides=st.sampled_from([("DEBIT", "CREDIT"), ("CREDIT", "DEBIT")]),
        late=st.sampled_from([None, None, 0, 0, 1]),
        currencies=mostly_right,
        balanced=mostly_right,
    )
    def post_transaction(
        self,
        source: Account,
        parts: list[tuple[Account, int]],
        sides: tuple[str, str],
        late: int | None,
        *,
        currencies: bool,
        balanced: bool,
    ) -> None:
        """Split an amount among several accounts, or gather it from them."""
        if currencies:
            parts = [part for part in parts if part[0].currency == source.currency] or parts
        one, other = sides
        total = sum(amount for _, amount in parts)
        legs = [
            requests.WantedLeg(
                account=source,
                direction=one,
                amount=(total if balanced else total + 1, source.currency),
                if_sequence=None if late is None else source.sequence - late,
            ),
            *(
                requests.WantedLeg(
                    account=account, direction=other, amount=(amount, source.currency)
                )
                for account, amount in parts
            ),
        ]
        self.send(
            requests.PostTransaction(
                caller=OPERATOR, key=self.new_key(), type="sale", legs=tuple(legs)
            )
        )

    @rule(
        mine=any_account,
        theirs=any_account,
        bank=any_account,
        amounts=st.tuples(*[st.integers(1, 9)] * 2),
    )
    def exchange(
        self, mine: Account, theirs: Account, bank: Account, amounts: tuple[int, int]
    ) -> None:
        """Post in two currencies at once, through accounts that may or may not be of them."""
        paid, got = (amounts[0], CURRENCY), (amounts[1], OTHER_CURRENCY)
        legs = (
            requests.WantedLeg(account=mine, direction="DEBIT", amount=paid),
            requests.WantedLeg(account=bank, direction="CREDIT", amount=paid),
            requests.WantedLeg(
                account=self.model.clearing[OTHER_CURRENCY], direction="DEBIT", amount=got
            ),
            requests.WantedLeg(account=theirs, direction="CREDIT", amount=got),
        )
        self.send(
            requests.PostTransaction(
                caller=OPERATOR, key=self.new_key(), type="exchange", legs=legs
            )
        )

    # ------------------------------------------------------------ holds and withdrawals

    @rule(
        account=any_wallet,
        share=shares,
        own=mostly_right,
        operator=st.booleans(),
        expires=st.booleans(),
    )
    def place_hold(
        self, account: Account, share: str, *, own: bool, operator: bool, expires: bool
    ) -> None:
        self.send(
            requests.PlaceHold(
                caller=OPERATOR if operator else self.owner_of(account, right=own),
                key=self.new_key(),
                account=account,
                amount=self.money(account, share),
                expires_at=FAR_AWAY if expires else None,
            )
        )

    @precondition(lambda self: self.some_holds("HOLD"))
    @rule(hold=any_hold, to=any_account, share=shares, right=mostly_right)
    def capture_hold(self, hold: Hold, to: Account, share: str, *, right: bool) -> None:
        currency = hold.account.currency if right else OTHER_CURRENCY
        amount = None if share == "all" else (self.part(hold.amount, share), currency)
        self.send(
            requests.CaptureHold(
                caller=OPERATOR, key=self.new_key(), hold=hold, to_account=to, amount=amount
            )
        )

    @precondition(lambda self: self.some_holds("HOLD"))
    @rule(hold=any_hold)
    def void_hold(self, hold: Hold) -> None:
        self.send(requests.VoidHold(caller=OPERATOR, key=self.new_key(), hold=hold))

    @rule(account=any_payer, share=shares, own=mostly_right)
    def withdraw(self, account: Account, share: str, *, own: bool) -> None:
        self.send(
            requests.Withdraw(
                caller=self.owner_of(account, right=own),
                key=self.new_key(),
                account=account,
                amount=self.money(account, share),
            )
        )

    @precondition(lambda self: self.some_holds("WITHDRAWAL"))
    @rule(hold=any_withdrawal, completed=st.booleans())
    def settle_withdrawal(self, hold: Hold, *, completed: bool) -> None:
        self.send(
            requests.SettleWithdrawal(
                caller=OPERATOR,
                key=self.new_key(),
                withdrawal=hold,
                outcome="COMPLETED" if completed else "FAILED",
                failure_reason=None if completed else "no such account",
            )
        )

    @precondition(lambda self: self.model.holds)
    @rule(hold=one_of(lambda machine: machine.model.holds))
    def take_the_one_for_the_other(self, hold: Hold) -> None:
        """A withdrawal is no hold to those who capture, and a hold no withdrawal to those who settle."""
        key, bank = self.new_key(), self.model.clearing[CURRENCY]
        wrong = (
            requests.CaptureHold(caller=OPERATOR, key=key, hold=hold, to_account=bank)
            if hold.purpose == "WITHDRAWAL"
            else requests.SettleWithdrawal(
                caller=OPERATOR, key=key, withdrawal=hold, outcome="COMPLETED"
            )
        )
        self.send(wrong)

    @precondition(lambda self: any(hold.expires for hold in self.model.holds))
    @rule(hold=one_of(lambda machine: [hold for hold in machine.model.holds if hold.expires]))
    def let_time_pass(self, hold: Hold) -> None:
        if hold.status == "OPEN":
            self.real.let_time_pass(hold)
        hold.overdue = True

    @rule()
    def expire_holds(self) -> None:
        due = self.model.expire_holds()
        assert self.real.expire_holds() == len(due)
        for hold in due:
            release = hold.transactions[-1]
            release.id, release.posted_at = self.real.last_transaction_of(hold)

    # ------------------------------------------------------------ taking back, gathering

    @precondition(lambda self: self.model.transactions)
    @rule(transaction=any_transaction)
    def reverse(self, transaction: Transaction) -> None:
        self.send(requests.Reverse(caller=OPERATOR, key=self.new_key(), transaction=transaction))

    @precondition(lambda self: self.model.transactions)
    @rule(transaction=any_transaction, share=shares, right=mostly_right)
    def refund(self, transaction: Transaction, share: str, *, right: bool) -> None:
        leg = transaction.legs[0]
        self.send(
            requests.Refund(
                caller=OPERATOR,
                key=self.new_key(),
                transaction=transaction,
                amount=(
                    self.part(leg.amount, share),
                    leg.currency if right else OTHER_CURRENCY,
                ),
            )
        )

    @rule(account=st.one_of(one_of(lambda machine: machine.striped), any_account))
    def sweep(self, account: Account) -> None:
        self.send(requests.Sweep(caller=OPERATOR, key=self.new_key(), account=account))

    @rule()
    def take_snapshots(self) -> None:
        self.real.take_snapshots()

    # ------------------------------------------------------------ the same key again

    @precondition(lambda self: self.sent)
    @rule(request=any_sent)
    def repeat(self, request: requests.Request) -> None:
        """Send the same request again: booked, it is replayed; refused, it is tried anew."""
        self.send(request)

    @precondition(lambda self: self.sent)
    @rule(request=any_sent, change=st.sampled_from(["description", "amount", "operation"]))
    def reuse_the_key(self, request: requests.Request, change: str) -> None:
        """Send another request with the same key."""
        amount = getattr(request, "amount", None)
        if change == "amount" and amount is not None:
            request = request.again(amount=(amount[0] + 1, amount[1]))
        elif change == "description" and hasattr(request, "description"):
            request = request.again(description="another")
        else:
            request = requests.OpenAccount(
                caller=request.caller,
                key=request.key,
                owner=request.caller,
                kind="LIABILITY",
                currency=CURRENCY,
            )
        self.send(request)

    # ------------------------------------------------------------ reading

    @rule(account=any_account, newest_first=st.booleans())
    def read_history(self, account: Account, *, newest_first: bool) -> None:
        assert_history(account, self.real.history(account, newest_first=newest_first))

    @precondition(lambda self: self.model.transactions)
    @rule(transaction=any_transaction)
    def read_balances_at(self, transaction: Transaction) -> None:
        """Read what all accounts had when a transaction was posted."""
        instant = transaction.posted_at
        assert instant is not None
        accounts = self.model.accounts
        assert self.real.balances_at(accounts, instant) == {
            account.id: _signed(account, account.posted_at(instant)) for account in accounts
        }

    @invariant()
    def the_two_agree(self) -> None:
        balances, statuses = self.real.balances(self.model.accounts), self.real.statuses()
        for account in self.model.accounts:
            assert account.id is not None
            balance = balances[account.id]
            assert statuses[account.id] == account.status
            assert balance.available == _signed(account, account.available), account
            assert balance.held == _signed(account, account.held), account
            assert balance.sequence == account.sequence, account
        assert self.real.holds() == [
            (hold.id, hold.account.id, hold.purpose, hold.amount, hold.captured, hold.status)
            for hold in self.model.holds
        ]

    @invariant()
    def the_books_are_right(self) -> None:
        self.real.assert_books_are_right()


def _signed(account: Account, amount: int) -> int:
    return amount if account.grows_with == "CREDIT" else -amount


def _name_of(request: requests.Request, answer: Any) -> str:
    """Name what happened, for the statistics of a run."""
    if isinstance(answer, Refused):
        return f"{request.operation}: {answer.refusal.code}"
    return f"{request.operation}: {'replayed' if answer.replayed else 'done'}"

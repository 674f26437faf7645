"""A machine of random steps: each request goes to the model and to the real ledger, which must answer alike.

After each step all balances, holds and statuses are compared, and the books are audited as a whole.
"""

from dataclasses import fields
from typing import Any, ClassVar, Final

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.ledger.posting.decision import Refused
from tests.stateful import choices, requests
from tests.stateful.agreement import assert_agreed, assert_history
from tests.stateful.choices import CURRENCY, OTHER_CURRENCY, one, pair, part_of, shares
from tests.stateful.model import OPERATOR, Model, UnclearError
from tests.stateful.real import FAR_AWAY, Databases
from tests.stateful.things import Account, Hold, Transaction

OWNERS: Final = ("alice", "bob")

any_account = one(choices.accounts)
any_open_hold = one(choices.open_holds("HOLD"))
any_pending_withdrawal = one(choices.open_holds("WITHDRAWAL"))
any_sent = st.runner().flatmap(lambda machine: st.sampled_from(machine.sent))


def knows(things: choices.Things[Any]) -> Any:
    """Allow a rule only where there is something for it to choose."""
    return precondition(lambda machine: bool(things(machine.model)))


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

    def new_key(self) -> str:
        self.keys += 1
        return f"key {self.keys}"

    def send(self, request: requests.Request) -> None:
        for account in choices.striped(self.model):
            account.scattered = self.real.is_scattered(account)
        try:
            expected = self.model.answer(request)
        except UnclearError:
            return
        answer = self.real.send(request)
        for currency, clearing in self.model.clearing.items():
            clearing.id = clearing.id or self.real.clearing_id(currency)
        self.sent.append(request)
        event(_name_of(request, answer))
        assert_agreed(request, expected, answer)

    # ------------------------------------------------------------ accounts

    @initialize()
    def open_a_few_accounts(self) -> None:
        """Begin with some money in accounts of every tracking, so that most steps have something to do."""
        self.open(owner="alice", kind="LIABILITY")
        self.open(owner="bob", kind="LIABILITY")
        self.open(owner="alice", kind="LIABILITY", tracking="STRIPED", stripes=3)
        self.open(owner=None, kind="REVENUE", tracking="DERIVED", allow_negative=True)
        self.open(owner=None, kind="EXPENSE")
        self.open(owner="alice", kind="LIABILITY", currency=OTHER_CURRENCY)
        self.open(owner="bob", kind="LIABILITY", currency=OTHER_CURRENCY)
        for account in choices.wallets(self.model):
            for _ in range(2):
                self.deposit(account, "some")

    @rule(
        owner=st.sampled_from([*OWNERS, None]),
        kind=st.sampled_from(["LIABILITY", "LIABILITY", "ASSET", "EQUITY", "REVENUE", "EXPENSE"]),
        currency=st.sampled_from([CURRENCY, CURRENCY, CURRENCY, OTHER_CURRENCY]),
        allow_negative=st.booleans(),
        tracking=st.sampled_from(["TRACKED", "TRACKED", "STRIPED", "DERIVED"]),
    )
    def open_account(self, tracking: str, *, allow_negative: bool, **sort: Any) -> None:
        self.open(
            tracking=tracking,
            stripes=2 if tracking == "STRIPED" else None,
            allow_negative=allow_negative or tracking == "DERIVED",
            **sort,
        )

    def open(self, **sort: Any) -> None:
        given: dict[str, Any] = {"currency": CURRENCY, **sort}
        self.send(requests.OpenAccount(caller=OPERATOR, key=self.new_key(), **given))

    @precondition(lambda self: not choices.with_status("FROZEN")(self.model))
    @rule(account=any_account)
    def freeze(self, account: Account) -> None:
        self.set_status(account, "FROZEN")

    @knows(choices.with_status("FROZEN"))
    @rule(account=one(choices.with_status("FROZEN")))
    def thaw(self, account: Account) -> None:
        self.set_status(account, "ACTIVE")

    @rule(account=one(choices.empty_or_any))
    def close(self, account: Account) -> None:
        self.set_status(account, "CLOSED")

    @knows(choices.with_status("CLOSED"))
    @rule(account=one(choices.with_status("CLOSED")), status=st.sampled_from(["ACTIVE", "FROZEN"]))
    def reopen(self, account: Account, status: str) -> None:
        self.set_status(account, status)

    def set_status(self, account: Account, status: str) -> None:
        refused = self.model.set_status(account, status)
        answer = self.real.set_status(account, status)
        if refused is None:
            event(f"setAccountStatus: {status}")
            assert not isinstance(answer, Refused), answer
            assert answer.status == status
        else:
            assert isinstance(answer, Refused), (refused, answer)
            event(f"setAccountStatus: {answer.refusal.code}")
            assert answer.refusal.code in refused.codes

    # ------------------------------------------------------------ movements

    @rule(account=any_account, share=shares)
    def deposit(self, account: Account, share: str) -> None:
        self.send(
            requests.Deposit(
                caller=OPERATOR,
                key=self.new_key(),
                account=account,
                amount=(part_of(account.available, share), account.currency),
            )
        )

    @rule(between=pair(choices.accounts, choices.peers), share=shares)
    def deposit_from(self, between: tuple[Account, Account], share: str) -> None:
        clearing, account = between
        self.send(
            requests.Deposit(
                caller=OPERATOR,
                key=self.new_key(),
                account=account,
                clearing_account=clearing,
                amount=(part_of(account.available, share), account.currency),
            )
        )

    @rule(between=pair(choices.payers, choices.wallets_beside), share=shares)
    def transfer(self, between: tuple[Account, Account], share: str) -> None:
        source, target = between
        self.send(
            requests.Transfer(
                caller=source.owner or OPERATOR,
                key=self.new_key(),
                from_account=source,
                to_account=target,
                amount=(part_of(source.available, share), source.currency),
            )
        )

    @rule(
        parts=st.lists(
            st.tuples(pair(choices.accounts, choices.peers), st.integers(1, 9)),
            min_size=1,
            max_size=4,
        ),
        sides=st.sampled_from([("DEBIT", "CREDIT"), ("CREDIT", "DEBIT")]),
        late=st.sampled_from([None, None, 0, 0, 1]),
        missing=st.sampled_from([0, 0, 0, 0, 1]),
    )
    def post_transaction(
        self,
        parts: list[tuple[tuple[Account, Account], int]],
        sides: tuple[str, str],
        late: int | None,
        missing: int,
    ) -> None:
        """Split an amount among several accounts, or gather it from them."""
        (source, first), _ = parts[0]
        others = [first, *(other for (_, other), _ in parts[1:] if other is not source)]
        amounts = [amount for _, amount in parts[: len(others)]]
        legs = [
            requests.WantedLeg(
                account=source,
                direction=sides[0],
                amount=(sum(amounts) + missing, source.currency),
                if_sequence=None if late is None else source.sequence - late,
            ),
            *(
                requests.WantedLeg(
                    account=other, direction=sides[1], amount=(amount, source.currency)
                )
                for other, amount in zip(others, amounts, strict=True)
            ),
        ]
        self.send(
            requests.PostTransaction(
                caller=OPERATOR, key=self.new_key(), type="sale", legs=tuple(legs)
            )
        )

    @rule(
        paid=pair(choices.accounts, choices.peers),
        got=pair(choices.accounts, choices.peers),
        amounts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    )
    def exchange(
        self,
        paid: tuple[Account, Account],
        got: tuple[Account, Account],
        amounts: tuple[int, int],
    ) -> None:
        """Post two movements at once, mostly of two currencies."""
        legs = tuple(
            requests.WantedLeg(
                account=account, direction=direction, amount=(amount, account.currency)
            )
            for between, amount in zip((paid, got), amounts, strict=True)
            for account, direction in zip(between, ("DEBIT", "CREDIT"), strict=True)
        )
        self.send(
            requests.PostTransaction(
                caller=OPERATOR, key=self.new_key(), type="exchange", legs=legs
            )
        )

    # ------------------------------------------------------------ holds and withdrawals

    @rule(account=one(choices.holders), share=shares, operator=st.booleans(), expires=st.booleans())
    def place_hold(self, account: Account, share: str, *, operator: bool, expires: bool) -> None:
        self.send(
            requests.PlaceHold(
                caller=OPERATOR if operator or account.owner is None else account.owner,
                key=self.new_key(),
                account=account,
                amount=(part_of(account.available, share), account.currency),
                expires_at=FAR_AWAY if expires else None,
            )
        )

    @knows(choices.open_holds("HOLD"))
    @rule(between=pair(choices.open_holds("HOLD"), choices.payees), share=shares)
    def capture_hold(self, between: tuple[Hold, Account], share: str) -> None:
        hold, target = between
        part = (part_of(hold.amount, share), hold.account.currency)
        self.send(
            requests.CaptureHold(
                caller=OPERATOR,
                key=self.new_key(),
                hold=hold,
                to_account=target,
                amount=None if share == "all" else part,
            )
        )

    @knows(choices.open_holds("HOLD"))
    @rule(hold=any_open_hold)
    def void_hold(self, hold: Hold) -> None:
        self.send(requests.VoidHold(caller=OPERATOR, key=self.new_key(), hold=hold))

    @rule(account=one(choices.payers), share=shares)
    def withdraw(self, account: Account, share: str) -> None:
        self.send(
            requests.Withdraw(
                caller=account.owner or OPERATOR,
                key=self.new_key(),
                account=account,
                amount=(part_of(account.available, share), account.currency),
            )
        )

    @knows(choices.open_holds("WITHDRAWAL"))
    @rule(withdrawal=any_pending_withdrawal, outcome=st.sampled_from(["COMPLETED", "FAILED"]))
    def settle_withdrawal(self, withdrawal: Hold, outcome: str) -> None:
        self.send(
            requests.SettleWithdrawal(
                caller=OPERATOR, key=self.new_key(), withdrawal=withdrawal, outcome=outcome
            )
        )

    @knows(choices.expiring)
    @rule(hold=one(choices.expiring), released=st.booleans())
    def let_time_pass(self, hold: Hold, *, released: bool) -> None:
        self.real.let_time_pass(hold)
        hold.overdue = True
        if released:
            self.expire_holds()

    @knows(choices.expiring)
    @rule()
    def expire_holds(self) -> None:
        due = self.model.expire_holds()
        assert self.real.expire_holds() == len(due)
        for hold in due:
            event("expired")
            release = hold.transactions[-1]
            release.id, release.posted_at = self.real.last_transaction_of(hold)

    # ------------------------------------------------------------ taking back, gathering

    @knows(choices.returnable)
    @rule(transaction=one(choices.returnable))
    def reverse(self, transaction: Transaction) -> None:
        self.send(requests.Reverse(caller=OPERATOR, key=self.new_key(), transaction=transaction))

    @knows(choices.returnable)
    @rule(transaction=one(choices.returnable), share=shares)
    def refund(self, transaction: Transaction, share: str) -> None:
        leg = transaction.legs[0]
        self.send(
            requests.Refund(
                caller=OPERATOR,
                key=self.new_key(),
                transaction=transaction,
                amount=(part_of(leg.amount, share), leg.currency),
            )
        )

    @rule(account=one(choices.striped))
    def sweep(self, account: Account) -> None:
        self.send(requests.Sweep(caller=OPERATOR, key=self.new_key(), account=account))

    @rule()
    def take_snapshots(self) -> None:
        self.real.take_snapshots()

    # ------------------------------------------------------------ what was sent, once more

    @rule(request=any_sent)
    def repeat(self, request: requests.Request) -> None:
        """Send the same request again: booked, it is replayed; refused, it is tried anew."""
        self.send(request)

    @rule(request=any_sent, number=st.integers(0, 9), same_key=st.booleans(), data=st.data())
    def change_one_field(
        self, request: requests.Request, number: int, data: st.DataObject, *, same_key: bool
    ) -> None:
        """Send a request with something else in one of its fields, whether that makes sense or not."""
        if isinstance(request, requests.OpenAccount):
            # Most of what can be changed about it is the operator's to ask for.
            request = request.again(caller=OPERATOR)
        names = [each.name for each in fields(request) if each.name not in {"caller", "key"}]
        name = names[number % len(names)]
        changed = data.draw(
            choices.something_else(self.model, name, getattr(request, name)), label=name
        )
        key = request.key if same_key else self.new_key()
        self.send(request.again(key=key, **{name: changed}))

    @rule(request=any_sent)
    def use_the_key_for_something_else(self, request: requests.Request) -> None:
        self.send(
            requests.OpenAccount(
                caller=request.caller,
                key=request.key,
                owner=request.caller,
                kind="LIABILITY",
                currency=CURRENCY,
            )
        )

    @rule(request=any_sent, caller=st.sampled_from(OWNERS))
    def ask_as_somebody_else(self, request: requests.Request, caller: str) -> None:
        """Try what only the owner may, with a key that is another one for being another caller's."""
        if isinstance(request, requests.Transfer | requests.Withdraw | requests.PlaceHold):
            self.send(request.again(caller=caller))

    # ------------------------------------------------------------ reading

    @rule(account=any_account, newest_first=st.booleans())
    def read_history(self, account: Account, *, newest_first: bool) -> None:
        assert_history(account, self.real.history(account, newest_first=newest_first))

    @rule(transaction=one(lambda model: model.transactions))
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

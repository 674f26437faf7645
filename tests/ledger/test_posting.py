"""The decision in memory: which refusal comes first, groups, repeated keys, posting times, and the rows to write."""

import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.ledger.errors import (
    AccountClosed,
    AccountFrozen,
    AccountNotFound,
    AmountOverflow,
    CurrencyMismatch,
    IdempotencyConflict,
    InsufficientFunds,
    Path,
    Refusal,
)
from app.ledger.idempotency import OPERATION, KnownKey, fingerprint
from app.ledger.model import Account, AccountKind, AccountPurpose, AccountStatus, BalanceTracking
from app.ledger.money import INT64_MAX, INT64_MIN, Money
from app.ledger.posting.decision import (
    Decision,
    NotAttempted,
    Posted,
    Refused,
    Replay,
    decide,
)
from app.ledger.posting.standing import CallerKey, LockedAccount, Standing
from app.ledger.requests import PostingRequest, RequestedLeg

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
A, B, C, BANK, MISSING = (UUID(int=number) for number in range(1, 6))

_numbers = itertools.count(100)


def account(account_id: UUID, **changes: Any) -> Account:
    given: dict[str, Any] = {
        "parent_id": None,
        "purpose": AccountPurpose.MAIN,
        "code": None,
        "owner": "alice",
        "kind": AccountKind.LIABILITY,
        "currency": "BRL",
        "status": AccountStatus.ACTIVE,
        "allow_negative": False,
        "tracking": BalanceTracking.TRACKED,
        "metadata": None,
        "created_at": NOW,
        **changes,
    }
    return Account(id=account_id, **given)


def locked(
    account_id: UUID,
    balance: int = 0,
    sequence: int = 0,
    posted_at: datetime | None = None,
    **changes: Any,
) -> LockedAccount:
    return LockedAccount(account(account_id, **changes), balance, sequence, posted_at)


def state(*accounts: LockedAccount) -> Mapping[UUID, LockedAccount]:
    return {one.account.id: one for one in accounts}


def leg(
    account_id: UUID, amount: int, path: str, currency: str = "BRL", **changes: Any
) -> RequestedLeg:
    return RequestedLeg(
        account_id=account_id,
        amount=Money(amount, currency),
        account_path=(path,),
        amount_path=("amount", "minorUnits"),
        **changes,
    )


def request(*legs: RequestedLeg, key: str | None = None, **changes: Any) -> PostingRequest:
    number = next(_numbers)
    given: dict[str, Any] = {
        "id": UUID(int=number),
        "type": "transfer",
        "caller": "alice",
        "key": key or f"key {number}",
        "fingerprint": fingerprint("transfer", {"number": number}),
        "legs": legs,
        **changes,
    }
    return PostingRequest(**given)


def move(source: UUID, target: UUID, amount: int, **changes: Any) -> PostingRequest:
    return request(leg(source, -amount, "from"), leg(target, amount, "to"), **changes)


def decided(
    accounts: Mapping[UUID, LockedAccount],
    *groups: Iterable[PostingRequest],
    known: Mapping[CallerKey, KnownKey] | None = None,
    now: datetime = NOW,
) -> Decision:
    return decide([tuple(group) for group in groups], Standing(now, accounts, known or {}))


def only_refusal(accounts: Mapping[UUID, LockedAccount], one: PostingRequest) -> Refusal:
    """Decide a single request that must be refused, and make sure that it leaves no row."""
    decision = decided(accounts, [one])
    ((outcome,),) = decision.outcomes
    assert isinstance(outcome, Refused)
    assert list(decision.bookings) == []
    assert dict(decision.moved) == {}
    return outcome.refusal


# ---------------------------------------------------------------- what is written


def test_a_posting_goes_on_from_the_locked_state() -> None:
    one = move(A, B, 30)
    decision = decided(state(locked(A, 100, 7), locked(B, 5, 2)), [one])

    ((outcome,),) = decision.outcomes
    assert isinstance(outcome, Posted)
    assert not outcome.replayed
    assert [
        (entry.account.id, entry.sequence, entry.amount, entry.balance_after)
        for entry in outcome.entries
    ] == [(A, 8, -30, 70), (B, 3, 30, 35)]
    assert {entry.transaction_id for entry in outcome.entries} == {one.id}
    assert dict(decision.moved) == {A: (70, 8), B: (35, 3)}
    assert [booking.request for booking in decision.bookings] == [one]
    assert [(side.account_id, side.amount) for side in outcome.transaction.legs] == [
        (A, -30),
        (B, 30),
    ]


def test_each_request_sees_what_the_ones_before_it_did() -> None:
    first, second, third = move(A, B, 100), move(B, C, 100), move(A, C, 1)
    decision = decided(state(locked(A, 100), locked(B), locked(C)), [first], [second], [third])

    assert isinstance(decision.outcomes[0][0], Posted)
    assert isinstance(decision.outcomes[1][0], Posted)
    assert decision.outcomes[2] == (
        Refused(InsufficientFunds(("amount", "minorUnits"), A, "BRL", available=0, required=1)),
    )
    assert dict(decision.moved) == {A: (0, 1), B: (0, 2), C: (100, 1)}


def test_an_account_may_stand_on_several_legs() -> None:
    """Each leg is an entry of its own, and only where the account ends is judged."""
    one = request(
        leg(A, -150, "first"), leg(B, 150, "second"), leg(A, 100, "third"), leg(B, -100, "fourth")
    )
    decision = decided(state(locked(A, 60, 1), locked(B)), [one])

    ((outcome,),) = decision.outcomes
    assert isinstance(outcome, Posted)
    assert [
        (entry.account.id, entry.sequence, entry.amount, entry.balance_after)
        for entry in outcome.entries
    ] == [(A, 2, -150, -90), (B, 1, 150, 150), (A, 3, 100, 10), (B, 2, -100, 50)]
    assert dict(decision.moved) == {A: (10, 3), B: (50, 2)}


def test_an_empty_batch_writes_nothing() -> None:
    decision = decided({})

    assert decision.outcomes == []
    assert list(decision.bookings) == []
    assert decision.posted_at == NOW


# ---------------------------------------------------------------- refusals of accounts


@pytest.mark.parametrize(
    ("legs", "path"),
    [
        ([leg(MISSING, -1, "from"), leg(B, 1, "to")], ("from",)),
        ([leg(A, -1, "from"), leg(MISSING, 1, "to")], ("to",)),
        ([leg(A, -1, "from", owner="bob"), leg(B, 1, "to")], ("from",)),
        ([leg(A, -1, "from"), leg(BANK, 1, "to", credit_normal=True)], ("to",)),
    ],
)
def test_what_may_not_be_named_is_an_account_that_is_not_there(
    legs: list[RequestedLeg], path: Path
) -> None:
    accounts = state(
        locked(A, 9), locked(B, 9), locked(BANK, kind=AccountKind.ASSET, allow_negative=True)
    )

    assert only_refusal(accounts, request(*legs)) == AccountNotFound(path)


@pytest.mark.parametrize("purpose", [AccountPurpose.HELD, AccountPurpose.STRIPE])
def test_a_child_is_never_addressed_by_its_own_id(purpose: AccountPurpose) -> None:
    accounts = state(locked(A, 9), locked(C, 9, purpose=purpose, parent_id=A))

    assert only_refusal(accounts, move(C, A, 1)) == AccountNotFound(("from",))
    assert only_refusal(accounts, move(A, C, 1)) == AccountNotFound(("to",))


def test_an_account_of_the_platform_is_nobodys_own() -> None:
    accounts = state(locked(A, 9, owner=None), locked(B))
    one = request(leg(A, -1, "from", owner="alice"), leg(B, 1, "to"))

    assert only_refusal(accounts, one) == AccountNotFound(("from",))


@pytest.mark.parametrize(
    ("status", "refusal"),
    [(AccountStatus.FROZEN, AccountFrozen), (AccountStatus.CLOSED, AccountClosed)],
)
def test_no_money_moves_in_or_out_of_an_account_that_is_not_active(
    status: AccountStatus, refusal: type[Refusal]
) -> None:
    accounts = state(locked(A, 9, status=status), locked(B, 9))

    assert only_refusal(accounts, move(A, B, 1)) == refusal(("from",))
    assert only_refusal(accounts, move(B, A, 1)) == refusal(("to",))


def test_the_amount_is_in_the_currency_of_every_account() -> None:
    accounts = state(locked(A, 9), locked(B, currency="JPY"))

    assert only_refusal(accounts, move(A, B, 1)) == CurrencyMismatch(
        ("amount", "currency"), account_currency="JPY", currency="BRL"
    )


def test_existence_is_judged_before_anything_that_would_tell_of_an_account() -> None:
    """Otherwise a frozen or foreign account would betray itself beside one that is not there."""
    accounts = state(
        locked(A, 0, status=AccountStatus.FROZEN, currency="JPY"), locked(B, owner="bob")
    )
    one = request(leg(A, -1, "from"), leg(B, 1, "to", owner="alice"))

    assert only_refusal(accounts, one) == AccountNotFound(("to",))


def test_refusals_come_in_a_fixed_order() -> None:
    """Everything is wrong at first; each thing that is put right uncovers the next."""
    one = request(leg(A, -INT64_MAX, "from", owner="alice"), leg(B, INT64_MAX, "to"))
    wrong: dict[str, Any] = {
        "owner": "bob",
        "currency": "JPY",
        "status": AccountStatus.FROZEN,
    }
    receiver = locked(B, 1)

    assert only_refusal(state(locked(A, **wrong)), one) == AccountNotFound(("from",))
    del wrong["owner"]
    assert only_refusal(state(locked(A, **wrong)), one) == AccountNotFound(("to",))
    assert only_refusal(state(locked(A, **wrong), receiver), one) == CurrencyMismatch(
        ("amount", "currency"), account_currency="JPY", currency="BRL"
    )
    del wrong["currency"]
    assert only_refusal(state(locked(A, **wrong), receiver), one) == AccountFrozen(("from",))
    del wrong["status"]
    assert only_refusal(state(locked(A, **wrong), receiver), one) == InsufficientFunds(
        ("amount", "minorUnits"), A, "BRL", available=0, required=INT64_MAX
    )
    assert only_refusal(state(locked(A, INT64_MAX), receiver), one) == AmountOverflow(
        ("amount", "minorUnits")
    )


# ---------------------------------------------------------------- refusals of amounts


@pytest.mark.parametrize(
    ("balance", "amount", "fits"),
    [
        (INT64_MAX - 5, 5, True),
        (INT64_MAX - 5, 6, False),
        (INT64_MAX, 1, False),
        (0, INT64_MAX, True),
    ],
)
def test_a_balance_never_leaves_64_bits(balance: int, amount: int, *, fits: bool) -> None:
    accounts = state(locked(A, INT64_MAX), locked(B, balance))
    one = move(A, B, amount)

    if fits:
        ((outcome,),) = decided(accounts, [one]).outcomes
        assert isinstance(outcome, Posted)
        assert outcome.entries[1].balance_after == balance + amount
    else:
        assert only_refusal(accounts, one) == AmountOverflow(("amount", "minorUnits"))


@pytest.mark.parametrize(("amount", "fits"), [(8, True), (9, False)])
def test_nor_does_one_below_zero(amount: int, *, fits: bool) -> None:
    accounts = state(locked(A, INT64_MIN + 8, allow_negative=True), locked(B))
    one = move(A, B, amount)

    if fits:
        assert decided(accounts, [one]).moved[A] == (INT64_MIN, 1)
    else:
        assert only_refusal(accounts, one) == AmountOverflow(("amount", "minorUnits"))


def test_a_sum_that_leaves_64_bits_on_the_way_is_refused_though_it_would_come_back() -> None:
    """Every entry bears the balance after it, so the way counts and not only its end."""
    accounts = state(locked(A, INT64_MAX), locked(B, 5, allow_negative=True))
    one = request(leg(A, 1, "a"), leg(B, -1, "b"), leg(A, -1, "c"), leg(B, 1, "d"))

    assert only_refusal(accounts, one) == AmountOverflow(("amount", "minorUnits"))


@pytest.mark.parametrize("kind", [AccountKind.LIABILITY, AccountKind.EQUITY, AccountKind.REVENUE])
def test_an_account_that_credits_raise_may_go_down_to_zero(kind: AccountKind) -> None:
    accounts = state(locked(A, 10, kind=kind), locked(B))

    assert decided(accounts, [move(A, B, 10)]).moved[A] == (0, 1)
    assert only_refusal(accounts, move(A, B, 11)) == InsufficientFunds(
        ("amount", "minorUnits"), A, "BRL", available=10, required=11
    )


@pytest.mark.parametrize("kind", [AccountKind.ASSET, AccountKind.EXPENSE])
def test_an_account_that_debits_raise_may_go_up_to_zero(kind: AccountKind) -> None:
    """Its stored sum is negative; what it has is shown from its normal side, also in the refusal."""
    accounts = state(locked(BANK, -10, kind=kind), locked(B))

    assert decided(accounts, [move(BANK, B, 5)]).moved[BANK] == (-15, 1)
    accounts = state(locked(BANK, -10, kind=kind), locked(B, 50))
    assert decided(accounts, [move(B, BANK, 10)]).moved[BANK] == (0, 1)
    assert only_refusal(accounts, move(B, BANK, 11)) == InsufficientFunds(
        ("amount", "minorUnits"), BANK, "BRL", available=10, required=11
    )


def test_who_may_fall_below_zero_does() -> None:
    accounts = state(locked(A, 0, allow_negative=True), locked(B))

    assert decided(accounts, [move(A, B, 11)]).moved[A] == (-11, 1)


# ---------------------------------------------------------------- keys


def test_a_repeated_key_within_a_batch_is_booked_once() -> None:
    first = move(A, B, 30, key="k")
    again = move(A, B, 30, key="k", fingerprint=first.fingerprint)
    decision = decided(state(locked(A, 100), locked(B)), [first], [again], [again])

    (original,), *repeated = decision.outcomes
    assert isinstance(original, Posted)
    assert not original.replayed
    for (outcome,) in repeated:
        assert isinstance(outcome, Posted)
        assert outcome.replayed
        assert outcome.transaction == original.transaction
        assert outcome.entries == original.entries
    assert [booking.request for booking in decision.bookings] == [first]
    assert dict(decision.moved) == {A: (70, 1), B: (30, 1)}


def test_a_repeated_key_with_another_request_is_a_conflict() -> None:
    first = move(A, B, 30, key="k", fingerprint=fingerprint("transfer", {"amount": "30"}))
    other = move(A, B, 31, key="k", fingerprint=fingerprint("transfer", {"amount": "31"}))
    decision = decided(state(locked(A, 100), locked(B)), [first], [other])

    assert decision.outcomes[1] == (
        Refused(IdempotencyConflict(("idempotencyKey",), first.id, ("amount",))),
    )
    assert dict(decision.moved) == {A: (70, 1), B: (30, 1)}


def test_a_key_belongs_to_its_caller() -> None:
    decision = decided(
        state(locked(A, 100), locked(B)),
        [move(A, B, 30, key="k")],
        [move(A, B, 30, key="k", caller="bob")],
    )

    assert len(decision.bookings) == 2


def test_a_refusal_leaves_its_key_free_for_the_next_request_of_the_batch() -> None:
    decision = decided(
        state(locked(A, 100), locked(B)), [move(A, B, 101, key="k")], [move(A, B, 100, key="k")]
    )

    assert isinstance(decision.outcomes[0][0], Refused)
    assert isinstance(decision.outcomes[1][0], Posted)
    assert [booking.request.key for booking in decision.bookings] == ["k"]


def test_a_known_key_is_replayed_whatever_has_become_of_the_accounts() -> None:
    one = move(A, B, 30, key="k")
    known = KnownKey(one.fingerprint, UUID(int=7), None)
    accounts = state(locked(A, 0, status=AccountStatus.CLOSED))
    decision = decided(accounts, [one], known={("alice", "k"): known})

    assert decision.outcomes == [(Replay(known),)]
    assert list(decision.bookings) == []


def test_a_known_key_of_another_operation_is_a_conflict() -> None:
    one = move(A, B, 30, key="k")
    known = KnownKey(fingerprint("openAccount", {}), None, UUID(int=8))
    decision = decided(state(locked(A, 99), locked(B)), [one], known={("alice", "k"): known})

    assert decision.outcomes == [
        (Refused(IdempotencyConflict(("idempotencyKey",), None, (OPERATION,))),)
    ]
    assert list(decision.bookings) == []


# ---------------------------------------------------------------- groups


def test_a_group_is_booked_wholly() -> None:
    group = [move(A, B, 60), move(B, C, 60), move(C, A, 60)]
    decision = decided(state(locked(A, 60), locked(B), locked(C)), group)

    assert all(isinstance(outcome, Posted) for outcome in decision.outcomes[0])
    assert [booking.request for booking in decision.bookings] == group
    assert dict(decision.moved) == {A: (60, 2), B: (0, 2), C: (0, 2)}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_group_with_a_bad_member_is_as_if_it_had_never_come(place: int) -> None:
    before, after = move(A, B, 10), move(B, A, 5)
    group = [move(A, B, 20), move(B, C, 5)]
    group.insert(place, move(A, B, 1_000))
    decision = decided(state(locked(A, 100), locked(B), locked(C)), [before], group, [after])

    refused = decision.outcomes[1][place]
    assert isinstance(refused, Refused)
    assert isinstance(refused.refusal, InsufficientFunds)
    assert [outcome for index, outcome in enumerate(decision.outcomes[1]) if index != place] == [
        NotAttempted(),
        NotAttempted(),
    ]
    assert [booking.request for booking in decision.bookings] == [before, after]
    assert dict(decision.moved) == {A: (95, 2), B: (5, 2)}


def test_the_keys_of_a_refused_group_stay_free() -> None:
    group = [move(A, B, 20, key="k"), move(A, B, 1_000)]
    alone = move(A, B, 7, key="k")
    decision = decided(state(locked(A, 100), locked(B)), group, [alone])

    assert decision.outcomes[0][0] == NotAttempted()
    assert isinstance(decision.outcomes[1][0], Posted)
    assert dict(decision.moved) == {A: (93, 1), B: (7, 1)}


def test_a_group_may_repeat_a_key_of_its_own() -> None:
    first = move(A, B, 20, key="k")
    decision = decided(
        state(locked(A, 100), locked(B)),
        [first, move(A, B, 20, key="k", fingerprint=first.fingerprint)],
    )

    ((one, two),) = decision.outcomes
    assert isinstance(one, Posted)
    assert isinstance(two, Posted)
    assert two.replayed
    assert dict(decision.moved) == {A: (80, 1), B: (20, 1)}


def test_a_conflict_refuses_its_whole_group() -> None:
    decision = decided(
        state(locked(A, 100), locked(B)),
        [move(A, B, 20, key="k"), move(A, B, 21, key="k"), move(A, B, 1)],
    )

    ((one, two, three),) = decision.outcomes
    assert isinstance(two, Refused)
    assert isinstance(two.refusal, IdempotencyConflict)
    assert (one, three) == (NotAttempted(), NotAttempted())
    assert list(decision.bookings) == []
    assert dict(decision.moved) == {}


# ---------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("last_posted", "expected"),
    [
        (None, NOW),
        (NOW - timedelta(seconds=1), NOW),
        (NOW, NOW),
        (NOW + timedelta(hours=1), NOW + timedelta(hours=1)),
    ],
)
def test_the_posting_time_never_decreases_though_the_clock_may(
    last_posted: datetime | None, expected: datetime
) -> None:
    accounts = state(locked(A, 100, 3, last_posted), locked(B))
    decision = decided(accounts, [move(A, B, 1)])

    ((outcome,),) = decision.outcomes
    assert isinstance(outcome, Posted)
    assert decision.posted_at == expected
    assert outcome.transaction.posted_at == expected
    assert {entry.posted_at for entry in outcome.entries} == {expected}


def test_a_fact_happened_when_its_caller_says_or_else_when_it_was_posted() -> None:
    earlier = NOW - timedelta(days=40)
    decision = decided(
        state(locked(A, 100), locked(B)), [move(A, B, 1, effective_at=earlier)], [move(A, B, 1)]
    )

    transactions = [booking.posted.transaction for booking in decision.bookings]
    assert [(one.effective_at, one.posted_at) for one in transactions] == [
        (earlier, NOW),
        (NOW, NOW),
    ]


def test_who_cannot_pay_learns_nothing_of_what_the_receiver_has() -> None:
    """The same refusal whether the amount would overflow the receiver's balance or not: else it could be searched for."""
    for received in (0, 7_312_945):
        one = move(A, B, INT64_MAX - 7_312_945 + 1)
        assert only_refusal(state(locked(A), locked(B, received)), one) == InsufficientFunds(
            ("amount", "minorUnits"), A, "BRL", available=0, required=INT64_MAX - 7_312_945 + 1
        )

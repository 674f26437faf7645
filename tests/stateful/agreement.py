"""Comparing what the ledger answers with what the model says, and telling the model what the ledger named things."""

from itertools import groupby
from typing import Any, assert_never

from app.ledger.administration import Opened
from app.ledger.answers import HoldPosted
from app.ledger.errors import (
    IdempotencyConflict,
    InsufficientFunds,
    RefundExceedsOriginal,
    Refusal,
    SequenceMismatch,
)
from app.ledger.model import AccountPurpose, Entry, Transaction
from app.ledger.posting.changes import Posted
from app.ledger.posting.decision import Refused
from tests.stateful import things
from tests.stateful.real import RealAnswer, caller_of
from tests.stateful.requests import Request


def assert_agreed(request: Request, expected: things.Answer, answer: RealAnswer) -> None:
    match expected:
        case things.Refused():
            assert isinstance(answer, Refused), (expected, answer)
            _assert_refused(request, expected, answer.refusal)
        case things.Opened(account, replayed):
            assert isinstance(answer, Opened), (expected, answer)
            assert answer.replayed == replayed
            account.id = account.id or answer.account.id
            assert answer.account.id == account.id
        case things.Booked(transaction, replayed):
            assert isinstance(answer, Posted | HoldPosted), (expected, answer)
            assert answer.replayed == replayed
            _assert_same(transaction, answer.transaction)
            if isinstance(answer, Posted):
                _assert_entries(request, transaction, answer.entries)
            else:
                _assert_hold(transaction.hold, answer)
        case _:
            assert_never(expected)


def assert_history(account: things.Account, entries: list[Entry]) -> None:
    """Compare a whole history, oldest entry first."""
    if account.tracking == "TRACKED":
        lines = account.lines
        assert _seen(account, entries) == [(line.amount, line.available) for line in lines]
        assert [entry.sequence for entry in entries] == list(range(1, len(lines) + 1))
        assert [entry.transaction_id for entry in entries] == [
            line.transaction.id for line in lines
        ]
        return
    stands = [stand for stand in account.stands if stand.in_history]
    groups = [list(group) for _, group in groupby(entries, lambda entry: entry.transaction_id)]
    assert [group[0].transaction_id for group in groups] == [
        stand.transaction.id for stand in stands
    ]
    assert [entry.sequence for entry in entries] == sorted({entry.sequence for entry in entries})
    had = 0
    for stand, group in zip(stands, groups, strict=True):
        had = _assert_group(account, had, stand.available, group)


def _assert_group(account: things.Account, had: int, has: int, group: list[Entry]) -> int:
    """Compare the lines of one transaction on a hot account, which may be more than the model's, and return what it has."""
    lines = _seen(account, group)
    for amount, available in lines:
        had += amount
        assert available == (None if account.tracking == "DERIVED" else had)
    assert had == has
    return has


def _seen(account: things.Account, entries: list[Entry]) -> list[tuple[int, int | None]]:
    sign = 1 if account.grows_with == "CREDIT" else -1
    return [
        (
            sign * entry.amount,
            None if entry.balance_after is None else sign * entry.balance_after,
        )
        for entry in entries
    ]


def _assert_refused(request: Request, expected: things.Refused, refusal: Refusal) -> None:
    assert refusal.code in expected.codes, (expected, refusal)
    assert refusal.path[0] in {"idempotencyKey", *_fields(request)}, refusal
    facts = _facts(refusal)
    if facts is not None:
        told = [facts for code, facts in expected.reasons if code == refusal.code]
        assert facts in [tuple(map(_name_of, each)) for each in told], (expected, refusal)


def _fields(request: Request) -> set[str]:
    """Name the fields of the input, whether they were given or not."""
    everything = {**request.meaning(), "amount": None, "clearingAccountId": None, "stripes": None}
    return {*everything, "allowNegative", "tracking", "toAccountId"}


def _facts(refusal: Refusal) -> tuple[Any, ...] | None:
    match refusal:
        case InsufficientFunds():
            return (refusal.account_id, refusal.available, refusal.required)
        case IdempotencyConflict():
            return (refusal.transaction_id, refusal.differing_fields)
        case SequenceMismatch():
            return (refusal.expected, refusal.found)
        case RefundExceedsOriginal():
            return (refusal.refundable,)
        case _:
            return None


def _name_of(fact: Any) -> Any:
    return fact.id if isinstance(fact, things.Account | things.Transaction) else fact


def _assert_same(expected: things.Transaction, transaction: Transaction) -> None:
    expected.id = expected.id or transaction.id
    expected.posted_at = expected.posted_at or transaction.posted_at
    assert transaction.id == expected.id
    assert transaction.posted_at == expected.posted_at
    assert transaction.type == expected.type
    assert transaction.caller == expected.caller
    assert transaction.description == expected.description
    original = expected.reverses
    assert transaction.reverses_id == (None if original is None else original.id)
    assert (transaction.hold_id is None) == (expected.hold is None)
    sums: dict[tuple[Any, bool], int] = {}
    for leg in transaction.legs:
        side = (leg.account_id, leg.purpose is AccountPurpose.HELD)
        sums[side] = sums.get(side, 0) + leg.amount
    for leg in expected.legs:
        side = (leg.account.id, leg.held)
        sums[side] = sums.get(side, 0) - (leg.amount if leg.direction == "CREDIT" else -leg.amount)
    assert not any(sums.values()), (expected, transaction)


def _assert_entries(
    request: Request, transaction: things.Transaction, entries: tuple[Entry, ...]
) -> None:
    """Compare the lines that the answer shows: those of accounts that the caller may read, each with its balance."""
    caller = caller_of(request.caller)
    assert all(entry.account.purpose is AccountPurpose.MAIN for entry in entries)
    for account in {leg.account: None for leg in transaction.legs}:
        shown = [entry for entry in entries if entry.account.id == account.id]
        if not any(caller.may_read(entry.account) for entry in shown):
            assert not shown
            assert account.owner != caller.subject
            continue
        numbers = [n for n, line in enumerate(account.lines) if line.transaction is transaction]
        if account.tracking == "TRACKED":
            lines = [account.lines[number] for number in numbers]
            assert _seen(account, shown) == [(line.amount, line.available) for line in lines]
            assert [entry.sequence for entry in shown] == [number + 1 for number in numbers]
            continue
        (stand,) = (stand for stand in account.stands if stand.transaction is transaction)
        gained = transaction.net().get(account, 0)
        ordered = sorted(shown, key=lambda entry: entry.sequence)
        _assert_group(account, stand.available - gained, stand.available, ordered)


def _assert_hold(expected: things.Hold | None, answer: HoldPosted) -> None:
    """Compare the hold as it stands now; a replay may find it further on."""
    assert expected is not None
    hold = answer.hold
    expected.id = expected.id or hold.id
    assert hold.id == expected.id == answer.transaction.hold_id
    assert hold.account_id == expected.account.id
    assert hold.purpose == expected.purpose
    assert (hold.amount, hold.captured) == (expected.amount, expected.captured)
    assert hold.status == expected.status
    assert (hold.closed_at is None) == (hold.status == "OPEN")

"""A batch with bad members: each is refused for its own reason, leaves no row, and disturbs no neighbour."""

import asyncio
from collections.abc import Callable
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
    InvalidAmount,
    InvalidInput,
    LedgerIncidentError,
    Refusal,
    SameAccount,
)
from app.ledger.model import AccountKind
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.transfers import TransferCommand
from app.ledger.posting.decision import NotAttempted, Posted, Refused
from tests.support.ledger import (
    RunningLedger,
    Wallet,
    contents,
    metric,
    new_key,
    posted,
    vnd,
)
from tests.support.postgres import TestDatabase, connect, scalar

AMOUNT = ("amount", "minorUnits")


async def as_superuser(database: TestDatabase, *statements: str) -> None:
    async with connect(database.superuser_url) as connection:
        for statement in statements:
            await connection.execute(statement)


async def set_status(database: TestDatabase, account_id: UUID, status: str) -> None:
    async with connect(database.superuser_url) as connection:
        await connection.execute("update account set status = $2 where id = $1", account_id, status)


@pytest.mark.timeout(90)
async def test_a_batch_with_a_bad_member_of_every_kind_posts_all_others(
    books: RunningLedger, audited: TestDatabase
) -> None:
    a, b = await books.wallet("alice", 100), await books.wallet("bob")
    foreign, yen = await books.wallet("bob", 5), await books.wallet("bob", currency="JPY")
    frozen, closed = await books.wallet("bob"), await books.wallet("bob")
    full, bank = await books.wallet("bob"), await books.clearing()
    await books.deposit(full.account, INT64_MAX, bank)
    asset = await books.open(kind=AccountKind.ASSET)
    await set_status(audited, frozen.id, "FROZEN")
    await set_status(audited, closed.id, "CLOSED")
    used = posted(await books.transfer(a, b, 1, key="used"))

    def command(**changes: Any) -> TransferCommand:
        given: dict[str, Any] = {
            "key": new_key(),
            "from_account_id": a.id,
            "to_account_id": b.id,
            "amount": vnd(1),
            **changes,
        }
        return TransferCommand(**given)

    bad: list[tuple[TransferCommand, Refusal]] = [
        (
            command(amount=vnd(1_000_000)),
            InsufficientFunds(AMOUNT, a.id, "VND", available=91, required=1_000_000),
        ),
        (
            command(key="used", amount=vnd(2)),
            IdempotencyConflict(("idempotencyKey",), used.transaction.id, ("amount",)),
        ),
        (
            command(key=""),
            InvalidInput(("idempotencyKey",), "must be 1 to 128 printable ASCII characters"),
        ),
        (command(amount=vnd(0)), InvalidAmount(AMOUNT)),
        (command(amount=vnd(2**63)), AmountOverflow(AMOUNT)),
        (
            command(amount=Money(1, "BRL")),
            CurrencyMismatch(("amount", "currency"), account_currency="VND", currency="BRL"),
        ),
        (
            command(to_account_id=yen.id),
            CurrencyMismatch(("amount", "currency"), account_currency="JPY", currency="VND"),
        ),
        (command(to_account_id=a.id), SameAccount(("toAccountId",))),
        (command(to_account_id=UUID(int=1)), AccountNotFound(("toAccountId",))),
        (command(to_account_id=None), AccountNotFound(("toAccountId",))),
        (command(from_account_id=foreign.id), AccountNotFound(("fromAccountId",))),
        (command(to_account_id=bank.id), AccountNotFound(("toAccountId",))),
        (command(to_account_id=asset.id), AccountNotFound(("toAccountId",))),
        (command(to_account_id=frozen.id), AccountFrozen(("toAccountId",))),
        (command(to_account_id=closed.id), AccountClosed(("toAccountId",))),
        (command(to_account_id=full.id), AmountOverflow(AMOUNT)),
    ]
    good = [command() for _ in range(2 * len(bad))]
    # Two good ones stand before each bad one; the first bad one therefore finds what eight of them have left.
    commands: list[TransferCommand] = [*good[:8]]
    for number, (one, _) in enumerate(bad):
        commands.append(one)
        if number >= 4:
            commands.extend(good[2 * number : 2 * number + 2])
    before = await contents(books.url)

    answers = await books.ledger.transfer_batch(a.owner, commands, atomic=False)

    assert isinstance(answers, list)
    by_command = list(zip(commands, answers, strict=True))
    refusals = {id(one): answer for one, answer in by_command if isinstance(answer, Refused)}
    assert [refusals.pop(id(one)) for one, _ in bad] == [Refused(refusal) for _, refusal in bad]
    assert refusals == {}
    booked = [answer for _, answer in by_command if isinstance(answer, Posted)]
    assert len(booked) == len(good)
    after = await contents(books.url)
    assert len(after["journal"]) == len(before["journal"]) + len(good)
    assert len(after["entry"]) == len(before["entry"]) + 2 * len(good)
    assert len(after["outbox"]) == len(before["outbox"]) + len(good)
    assert len(after["idempotency_key"]) == len(before["idempotency_key"]) + len(good)
    assert await books.available(a) == 99 - len(good)
    assert await books.available(b) == 1 + len(good)

    # Every key that was refused is free: the same key books a request that is in order.
    for one, refusal in bad:
        if one.key and not isinstance(refusal, IdempotencyConflict):
            answer = posted(await books.transfer(a, b, 1, key=one.key))
            assert not answer.replayed


async def refused_transfers(
    books: RunningLedger, audited: TestDatabase
) -> list[tuple[Wallet, Wallet, int]]:
    a, b = await books.wallet("alice", 10), await books.wallet("bob")
    frozen = await books.wallet("bob")
    await set_status(audited, frozen.id, "FROZEN")
    yen = await books.wallet("bob", currency="JPY")
    return [
        (a, b, 11),
        (a, a, 1),
        (a, b, 0),
        (a, frozen, 1),
        (a, yen, 1),
        (Wallet(b.account, a.owner), a, 1),
    ]


async def test_a_refusal_changes_no_row_of_any_table(
    books: RunningLedger, audited: TestDatabase
) -> None:
    cases = await refused_transfers(books, audited)
    before = await contents(books.url)

    for source, target, amount in cases:
        answer = await books.transfer(source, target, amount)
        assert isinstance(answer, Refused)
        assert await contents(books.url) == before


async def test_a_refusal_is_not_remembered(books: RunningLedger) -> None:
    """The documented rule: a refusal stores nothing, so the same key succeeds once the reason is gone."""
    a, b = await books.wallet("alice", 50), await books.wallet("bob")

    assert isinstance(await books.transfer(a, b, 100, key="k"), Refused)
    await books.deposit(a.account, 100)
    answer = posted(await books.transfer(a, b, 100, key="k"))

    assert not answer.replayed
    assert await books.available(a) == 50


async def test_a_transfer_to_oneself_is_refused(books: RunningLedger) -> None:
    a = await books.wallet("alice", 50)
    before = await contents(books.url)

    assert await books.transfer(a, a, 10) == Refused(SameAccount(("toAccountId",)))
    batch = await books.ledger.transfer_batch(
        a.owner, [TransferCommand(new_key(), a.id, UUID(str(a.id).upper()), vnd(1))], atomic=True
    )
    assert batch == [Refused(SameAccount(("toAccountId",)))]
    assert await contents(books.url) == before


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_batch_has_a_limit_and_may_be_empty(books: RunningLedger, *, atomic: bool) -> None:
    a, b = await books.wallet("alice", 5_000), await books.wallet("bob")
    commands = [TransferCommand(new_key(), a.id, b.id, vnd(1)) for _ in range(1_001)]
    before = await contents(books.url)

    assert await books.ledger.transfer_batch(a.owner, commands, atomic=atomic) == Refused(
        InvalidInput(("transfers",), "must have at most 1000 transfers")
    )
    assert await books.ledger.transfer_batch(a.owner, [], atomic=atomic) == []
    assert await contents(books.url) == before
    answers = await books.ledger.transfer_batch(a.owner, commands[:1_000], atomic=atomic)
    assert isinstance(answers, list)
    assert all(isinstance(answer, Posted) for answer in answers)
    assert await books.available(b) == 1_000


async def test_an_atomic_batch_with_a_bad_member_books_nothing_and_keeps_all_keys_free(
    books: RunningLedger,
) -> None:
    a, b = await books.wallet("alice", 100), await books.wallet("bob")
    commands = [TransferCommand(new_key(), a.id, b.id, vnd(amount)) for amount in (60, 60, 10)]
    before = await contents(books.url)

    answers = await books.ledger.transfer_batch(a.owner, commands, atomic=True)

    assert answers == [
        NotAttempted(),
        Refused(InsufficientFunds(AMOUNT, a.id, "VND", available=40, required=60)),
        NotAttempted(),
    ]
    assert await contents(books.url) == before
    again = await books.ledger.transfer_batch(a.owner, commands[1:], atomic=True)
    assert isinstance(again, list)
    assert [posted(answer).replayed for answer in again] == [False, False]
    assert await books.available(a) == 30


async def test_an_atomic_batch_is_replayed_as_a_whole(books: RunningLedger) -> None:
    a, b = await books.wallet("alice", 100), await books.wallet("bob")
    commands = [TransferCommand(new_key(), a.id, b.id, vnd(amount)) for amount in (60, 10)]

    first = await books.ledger.transfer_batch(a.owner, commands, atomic=True)
    before = await contents(books.url)
    again = await books.ledger.transfer_batch(a.owner, commands, atomic=True)

    assert isinstance(first, list)
    assert isinstance(again, list)
    assert [posted(answer).transaction for answer in again] == [
        posted(answer).transaction for answer in first
    ]
    assert [posted(answer).replayed for answer in again] == [True, True]
    assert await contents(books.url) == before


async def test_a_caller_sees_the_entries_of_its_own_accounts_only(books: RunningLedger) -> None:
    """Otherwise the balance after an entry would tell the sender what the receiver has."""
    a, b = await books.wallet("alice", 100), await books.wallet("bob", 70)

    for _ in range(2):
        answer = posted(await books.transfer(a, b, 1, key="k"))
        assert [entry.account.id for entry in answer.entries] == [a.id]
        assert [leg.account_id for leg in answer.transaction.legs] == [a.id, b.id]


# ---------------------------------------------------------------- when the net beneath the decision holds

REFUSE_AMOUNT = "alter table entry add constraint no_beast check (abs(amount) <> 666)"

REFUSE_DESCRIPTION = """
create function refuse_beast() returns trigger language plpgsql as $$
begin
  if new.description = 'beast' then
    raise exception 'refused' using errcode = 'check_violation', constraint = 'no_beast';
  end if;
  return new;
end
$$
"""

CHECK_DESCRIPTION = """
create trigger no_beast before insert on journal for each row execute function refuse_beast()
"""

Beast = Callable[[RunningLedger, Wallet, Wallet], Any]


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param((REFUSE_AMOUNT,), id="a check on the entries"),
        pytest.param((REFUSE_DESCRIPTION, CHECK_DESCRIPTION), id="a trigger on the journal"),
    ],
)
async def test_what_only_the_database_refuses_disturbs_no_neighbour_and_is_an_incident(
    books: RunningLedger, audited: TestDatabase, statements: tuple[str, ...]
) -> None:
    a, b = await books.wallet("alice", 10_000), await books.wallet("bob")
    await as_superuser(audited, *statements)
    incidents = metric("saldo_constraint_incidents_total", constraint="no_beast")

    answers = await asyncio.gather(
        *(books.transfer(a, b, 1) for _ in range(10)),
        books.transfer(a, b, 666, key="beast", description="beast"),
        *(books.transfer(a, b, 1) for _ in range(10)),
        return_exceptions=True,
    )

    assert isinstance(answers[10], LedgerIncidentError)
    assert all(isinstance(answer, Posted) for answer in answers[:10] + answers[11:])
    assert await books.available(a) == 10_000 - 20
    assert await books.available(b) == 20
    count = "select count(*) from idempotency_key where key = $1"
    assert await scalar(audited.superuser_url, count, "beast") == 0
    assert metric("saldo_constraint_incidents_total", constraint="no_beast") == incidents + 1


async def test_an_incident_alone_is_counted_and_its_key_stays_free(
    books: RunningLedger, audited: TestDatabase
) -> None:
    a, b = await books.wallet("alice", 10_000), await books.wallet("bob")
    await as_superuser(audited, REFUSE_AMOUNT)
    before = await contents(books.url)
    incidents = metric("saldo_constraint_incidents_total", constraint="no_beast")

    with pytest.raises(LedgerIncidentError) as caught:
        await books.transfer(a, b, 666, key="k")

    assert str(caught.value) == ""
    assert await contents(books.url) == before
    assert metric("saldo_constraint_incidents_total", constraint="no_beast") == incidents + 1
    assert not posted(await books.transfer(a, b, 665, key="k")).replayed


async def test_an_overdraft_that_the_decision_missed_is_stopped_by_the_check(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """The row is made to lie, as an error in the decision would: it allows what the table's own rule does not."""
    a, b = await books.wallet("alice", 10), await books.wallet("bob")
    await as_superuser(
        audited,
        "alter table account drop constraint account_not_overdrawn",
        "update account set allow_negative = true where owner = 'alice'",
        "alter table account add constraint account_not_overdrawn check (balance >= 0 or kind = 'ASSET')",
    )
    before = await contents(books.url)

    with pytest.raises(LedgerIncidentError):
        await books.transfer(a, b, 11)

    assert await contents(books.url) == before

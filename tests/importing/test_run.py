"""A file is booked wholly or not at all, each account once for ever, whoever imports what and however often."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest

from app.importing import (
    ROWS_AT_ONCE,
    Comparison,
    FaultyFileError,
    Import,
    Plan,
    Total,
    read_sheet,
)
from app.ledger.administration import SetAccountStatusCommand
from app.ledger.model import AccountKind, AccountStatus, BalanceTracking
from app.ledger.money import INT64_MAX, Money
from app.ledger.movements.transfers import TransferCommand
from app.ledger.openings import Openings
from tests.support.ledger import OPERATOR, RunningLedger, contents, new_key, posted, wallet_user
from tests.support.postgres import connect, scalar

HEADER = "code,owner,kind,currency,amount"
ROWS = (
    "wallet:alice,alice,LIABILITY,BRL,12.34",
    "wallet:bob,bob,LIABILITY,BRL,0.00",
    "capital,,EQUITY,BRL,5.00",
    "bank,,ASSET,BRL,17.34",
    "cash,,ASSET,JPY,700",
)


def content(rows: Sequence[str]) -> bytes:
    return "\n".join([HEADER, *rows]).encode()


def importing(openings: Openings, rows: Sequence[str] = ROWS) -> Import:
    return Import(openings, read_sheet("opening.csv", content(rows)))


async def book(openings: Openings, rows: Sequence[str] = ROWS) -> tuple[Plan, Comparison]:
    """Import a file to its end, and return what was planned and what came of it."""
    run = importing(openings, rows)
    plan = await run.plan()
    assert await run.book(plan, asyncio.Event(), lambda _: None)
    return plan, await run.review()


async def faults(openings: Openings, rows: Sequence[str]) -> list[tuple[int | None, str]]:
    with pytest.raises(FaultyFileError) as refused:
        await importing(openings, rows).plan()
    return [(fault.line, fault.reason) for fault in refused.value.faults]


async def stored(books: RunningLedger) -> dict[str, int]:
    """Read the balances, credit positive, by code."""
    async with connect(books.url) as connection:
        rows = await connection.fetch("select code, balance from account where code is not null")
    return {row["code"]: row["balance"] for row in rows}


async def test_accounts_are_opened_with_what_they_begin_with(
    books: RunningLedger, openings: Openings
) -> None:
    plan, review = await book(openings)

    assert review.differences == ()
    assert review.file == review.ledger == {"BRL": Total(1734, 1734), "JPY": Total(700, 0)}
    tally = plan.tally(review.differences)
    assert (tally.rows, tally.opened, tally.booked, tally.there) == (5, 5, 4, 0)
    assert await stored(books) == {
        "wallet:alice": 1234,
        "wallet:bob": 0,
        "capital": 500,
        "bank": -1734,
        "cash": -700,
        "system:opening:BRL": 0,
        "system:opening:JPY": 700,
    }
    alice = await books.reader.account_by_code(OPERATOR, "wallet:alice")
    assert alice is not None
    assert (alice.owner, alice.kind, alice.currency) == ("alice", AccountKind.LIABILITY, "BRL")
    bank = await books.reader.account_by_code(OPERATOR, "bank")
    assert bank is not None
    assert bank.owner is None
    assert not bank.allow_negative


async def test_each_transaction_tells_where_it_comes_from(
    books: RunningLedger, openings: Openings
) -> None:
    await book(openings)

    async with connect(books.url) as connection:
        rows = await connection.fetch(
            """
            select a.code, j.type, j.caller, j.metadata ->> 'file' as file, j.metadata ->> 'sha256' as sha256,
              cast(j.metadata ->> 'line' as int) as line
            from journal j join entry e on e.transaction_id = j.id join account a on a.id = e.account_id
            where a.code not like 'system:%' order by line
            """
        )
    digest = sha256(content(ROWS)).hexdigest()
    assert [tuple(row) for row in rows] == [
        ("wallet:alice", "opening", "", "opening.csv", digest, 2),
        ("capital", "opening", "", "opening.csv", digest, 4),
        ("bank", "opening", "", "opening.csv", digest, 5),
        ("cash", "opening", "", "opening.csv", digest, 6),
    ]


async def test_a_plan_writes_nothing(books: RunningLedger, openings: Openings) -> None:
    before = await contents(books.url)

    plan = await importing(openings).plan()

    assert [row.line for row in plan.pending] == [2, 3, 4, 5, 6]
    assert plan.differing == ()
    assert plan.before.ledger == {}
    assert await contents(books.url) == before


async def test_o04_a_file_that_is_imported_again_books_nothing(
    books: RunningLedger, openings: Openings
) -> None:
    await book(openings)
    before = await contents(books.url)

    plan, review = await book(openings)

    assert plan.pending == ()
    assert review.differences == ()
    assert plan.tally(()).there == 5
    assert await contents(books.url) == before


async def test_o04_one_bad_row_keeps_all_others_from_being_booked(
    books: RunningLedger, openings: Openings
) -> None:
    before = await contents(books.url)
    rows = [f"wallet:{number},,LIABILITY,BRL,1.00" for number in range(1_000)]
    rows[600] = "wallet:600,,LIABILITY,JPY,1.00"

    found = await faults(openings, rows)

    assert [line for line, _ in found] == [602]
    assert await contents(books.url) == before


async def test_all_that_is_wrong_is_said_at_once_in_the_order_of_lines(
    books: RunningLedger, openings: Openings
) -> None:
    await books.open(code="taken", owner="somebody", currency="BRL")
    before = await contents(books.url)
    largest = Money(INT64_MAX, "BRL").decimal

    found = await faults(
        openings,
        [
            "wallet:1,,LIABILITY,BRL,1.00",
            "taken,,LIABILITY,BRL,1.00",
            "wallet:1,,LIABILITY,BRL,1.00",
            "wallet:2,,LIABILITY,BTC,1.00",
            f"wallet:3,,LIABILITY,BRL,{largest}",
        ],
    )

    assert [line for line, _ in found] == [3, 4, 5, None, None]
    assert found[0][1] == "the account taken is there already, with another owner"
    assert await contents(books.url) == before


@pytest.mark.parametrize(
    "edited",
    [
        ["wallet:alice,alice,LIABILITY,BRL,12.35", *ROWS[1:]],
        ["wallet:alice,alice,LIABILITY,BRL,0.00", *ROWS[1:]],
    ],
)
async def test_o04_an_edited_file_books_no_account_twice_and_says_what_differs(
    books: RunningLedger, openings: Openings, edited: list[str]
) -> None:
    await book(openings)
    before = await contents(books.url)

    plan, review = await book(openings, edited)

    assert [each.line for each in plan.differing] == [2]
    (difference,) = review.differences
    assert difference.line == 2
    assert "has its opening balance already, 12.34 BRL" in difference.reason
    assert (review.ledger["BRL"].credits, plan.tally(review.differences).there) == (1734, 4)
    assert await contents(books.url) == before


async def test_rows_that_are_added_to_a_file_are_booked_alone(
    books: RunningLedger, openings: Openings
) -> None:
    await book(openings)

    plan, review = await book(openings, ["wallet:carol,carol,LIABILITY,BRL,1.00", *ROWS])

    assert [row.line for row in plan.pending] == [2]
    assert review.differences == ()
    balances = await stored(books)
    assert (balances["wallet:alice"], balances["wallet:carol"]) == (1234, 100)


async def test_an_account_that_began_with_nothing_may_still_get_its_balance_once(
    books: RunningLedger, openings: Openings
) -> None:
    await book(openings)

    for _ in range(2):
        _, review = await book(openings, ["wallet:bob,bob,LIABILITY,BRL,3.00"])
        assert review.differences == ()

    assert (await stored(books))["wallet:bob"] == 300


async def test_an_account_that_lives_already_gets_its_balance_beside_what_it_has(
    books: RunningLedger, openings: Openings
) -> None:
    wallet = await books.open(code="wallet:alice", owner="alice", currency="BRL")
    await books.deposit(wallet, 50)

    _, review = await book(openings)

    assert review.differences == ()
    assert (await stored(books))["wallet:alice"] == 1284


async def test_o04_a_run_that_was_broken_off_is_gone_on_with(
    books: RunningLedger, openings: Openings
) -> None:
    """Where the accounts are opened and their balances aren't booked yet, which is where a kill hurts most."""
    rows = [f"wallet:{number},,LIABILITY,BRL,1.00" for number in range(3 * ROWS_AT_ONCE)]
    stop = asyncio.Event()
    run = importing(openings, rows)
    plan = await run.plan()
    assert not await run.book(plan, stop, lambda _: stop.set())
    assert await scalar(books.url, "select count(*) from journal") == ROWS_AT_ONCE
    for row in plan.pending[ROWS_AT_ONCE : ROWS_AT_ONCE + 10]:
        await books.open(code=row.balance.code, currency="BRL")

    second, review = await book(openings, rows)

    assert len(second.pending) == 2 * ROWS_AT_ONCE
    assert len(second.new) == 2 * ROWS_AT_ONCE - 10
    assert review.differences == ()
    assert review.ledger == review.file == {"BRL": Total(0, 300 * ROWS_AT_ONCE)}
    assert await scalar(books.url, "select count(*) from journal") == len(rows)


async def test_an_account_may_be_used_while_the_rest_is_still_being_booked(
    books: RunningLedger, openings: Openings
) -> None:
    rows = ["wallet:alice,alice,LIABILITY,BRL,5.00", "wallet:bob,bob,LIABILITY,BRL,0.00"]
    await book(openings, rows)
    accounts = [
        await books.reader.account_by_code(OPERATOR, f"wallet:{n}") for n in ("alice", "bob")
    ]
    payer, payee = (account.id for account in accounts if account is not None)
    spent = TransferCommand(new_key(), payer, payee, Money(500, "BRL"))
    posted(await books.ledger.transfer(wallet_user("alice"), spent))
    before = await contents(books.url)

    _, review = await book(openings, rows)

    assert review.differences == ()
    assert await contents(books.url) == before


async def test_two_imports_of_one_file_at_once_book_each_account_once(
    books: RunningLedger, openings: Openings
) -> None:
    rows = [f"wallet:{number},,LIABILITY,BRL,1.00" for number in range(2 * ROWS_AT_ONCE)]
    plans = [await importing(openings, order).plan() for order in (rows, rows[::-1])]
    runs = [importing(openings, order) for order in (rows, rows[::-1])]

    await asyncio.gather(
        *(
            run.book(plan, asyncio.Event(), lambda _: None)
            for run, plan in zip(runs, plans, strict=True)
        )
    )

    for run in runs:
        assert (await run.review()).differences == ()
    assert await scalar(books.url, "select count(*) from journal") == len(rows)
    assert (await stored(books))["system:opening:BRL"] == -100 * len(rows)


async def test_two_files_that_disagree_at_once_leave_one_balance_and_one_difference(
    books: RunningLedger, openings: Openings
) -> None:
    runs = [importing(openings, [f"wallet,,LIABILITY,BRL,{amount}"]) for amount in ("1.00", "2.00")]
    plans = [await run.plan() for run in runs]

    await asyncio.gather(
        *(
            run.book(plan, asyncio.Event(), lambda _: None)
            for run, plan in zip(runs, plans, strict=True)
        )
    )

    differences = [(await run.review()).differences for run in runs]
    assert sorted(map(len, differences)) == [0, 1]
    assert await scalar(books.url, "select count(*) from journal") == 1


@pytest.mark.parametrize(
    "changes",
    [{"owner": "mallory"}, {"kind": AccountKind.EQUITY}, {"currency": "USD"}],
    ids=["owner", "kind", "currency"],
)
async def test_an_account_that_somebody_opens_otherwise_meanwhile_gets_nothing(
    books: RunningLedger, openings: Openings, changes: dict[str, Any]
) -> None:
    run = importing(openings)
    plan = await run.plan()
    facts = {"code": "wallet:alice", "owner": "alice", "currency": "BRL", **changes}
    await books.open(**facts)

    await run.book(plan, asyncio.Event(), lambda _: None)

    (difference,) = (await run.review()).differences
    assert difference.line == 2
    assert "is there already, with another" in difference.reason
    assert (await stored(books))["wallet:alice"] == 0


async def test_an_account_that_is_frozen_meanwhile_is_a_difference_with_its_reason(
    books: RunningLedger, openings: Openings
) -> None:
    wallet = await books.open(code="wallet:alice", owner="alice", currency="BRL")
    run = importing(openings)
    plan = await run.plan()
    frozen = SetAccountStatusCommand(wallet.id, AccountStatus.FROZEN)
    await books.ledger.set_account_status(OPERATOR, frozen)

    await run.book(plan, asyncio.Event(), lambda _: None)

    review = await run.review()
    (difference,) = review.differences
    assert difference.line == 2
    assert difference.reason == (
        "the account wallet:alice has no opening balance; the file gives it 12.34 BRL, refused as ACCOUNT_FROZEN"
    )
    tally = plan.tally(review.differences)
    assert (tally.opened, tally.booked, tally.there, tally.differing) == (4, 3, 0, 1)


@pytest.mark.parametrize(
    ("tracking", "changes"),
    [
        (BalanceTracking.STRIPED, {"stripes": 4}),
        (BalanceTracking.DERIVED, {"allow_negative": True}),
    ],
)
async def test_a_hot_account_gets_its_balance_once_as_well(
    books: RunningLedger, openings: Openings, tracking: BalanceTracking, changes: dict[str, Any]
) -> None:
    account = await books.open(
        code="fees", kind=AccountKind.REVENUE, currency="BRL", tracking=tracking, **changes
    )
    rows = ["fees,,REVENUE,BRL,9.00"]

    for _ in range(2):
        _, review = await book(openings, rows)
        assert review.differences == ()
        assert review.ledger == {"BRL": Total(0, 900)}

    assert await books.available(account) == 900
    assert await scalar(books.url, "select count(*) from journal") == 1


async def test_what_the_equity_account_has_already_counts(
    books: RunningLedger, openings: Openings
) -> None:
    largest = Money(INT64_MAX, "BRL").decimal
    await book(openings, ["a,,LIABILITY,BRL,1.00"])
    await book(openings, ["b,,ASSET,BRL,1.00", "c,,ASSET,BRL,2.00"])
    before = await contents(books.url)

    found = await faults(openings, [f"d,,ASSET,BRL,{largest}"])

    assert [line for line, _ in found] == [None]
    assert await contents(books.url) == before


async def test_progress_is_told_row_by_row_to_the_end(openings: Openings) -> None:
    rows = [f"wallet:{number},,LIABILITY,BRL,0.01" for number in range(ROWS_AT_ONCE + 1)]
    run = importing(openings, rows)
    steps: list[int] = []

    await run.book(await run.plan(), asyncio.Event(), steps.append)

    assert steps == [ROWS_AT_ONCE, 1]

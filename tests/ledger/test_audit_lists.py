"""Lists of the whole ledger, for those who audit it: everybody's accounts and holds, and all transactions."""

from collections.abc import Callable
from datetime import timedelta
from itertools import combinations
from uuid import UUID

import pytest

from app.ledger import pages
from app.ledger.model import (
    Account,
    AccountKind,
    AccountStatus,
    BalanceTracking,
    Caller,
    HoldPurpose,
    MissingScopeError,
    Scope,
    Transaction,
)
from app.ledger.pages import AccountFilter, HoldFilter, Page, PageRequest, TransactionFilter
from tests.support.ledger import OPERATOR, RunningLedger, posted
from tests.support.paging import walk
from tests.support.postgres import TestDatabase, connect

FIRST_FIVE: PageRequest[UUID] = PageRequest(5)

AUDITOR = Caller("auditor", frozenset({Scope.AUDIT}))

TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    "scopes",
    [
        frozenset(chosen)
        for size in range(3)
        for chosen in combinations((Scope.WALLET, Scope.OPERATE), size)
    ],
)
async def test_only_who_audits_sees_lists_of_everything(
    books: RunningLedger, scopes: frozenset[Scope]
) -> None:
    caller, page = Caller("alice", scopes), FIRST_FIVE
    for ask in (
        lambda: books.reader.accounts_page(caller, AccountFilter(), page),
        lambda: books.reader.accounts_page(caller, AccountFilter(owner="alice"), page),
        lambda: books.reader.count_accounts(caller, AccountFilter()),
        lambda: books.reader.transactions_page(caller, TransactionFilter(), page),
        lambda: books.reader.holds_page(caller, HoldFilter(HoldPurpose.WITHDRAWAL), page),
    ):
        with pytest.raises(MissingScopeError) as caught:
            await ask()
        assert caught.value.scopes == (Scope.AUDIT,)


async def test_all_main_accounts_are_paged_in_the_order_of_their_opening(
    books: RunningLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither stripes nor held children are among them."""
    made = [
        await books.open(
            owner=("alice", "bob", None)[number % 3],
            code=f"code:{number}" if number % 2 else None,
            currency="BRL" if number % 4 else "JPY",
            kind=AccountKind.LIABILITY if number % 5 else AccountKind.ASSET,
            tracking=BalanceTracking.TRACKED if number % 6 else BalanceTracking.STRIPED,
        )
        for number in range(13)
    ]
    filters: list[tuple[AccountFilter, Callable[[Account], bool]]] = [
        (AccountFilter(), lambda _: True),
        (AccountFilter(owner="alice"), lambda one: one.owner == "alice"),
        (AccountFilter(owner="nobody"), lambda _: False),
        (AccountFilter(currency="JPY"), lambda one: one.currency == "JPY"),
        (AccountFilter(kind=AccountKind.ASSET), lambda one: one.kind is AccountKind.ASSET),
        (AccountFilter(status=AccountStatus.CLOSED), lambda _: False),
        (AccountFilter(code_prefix="code:1"), lambda one: (one.code or "").startswith("code:1")),
        (
            AccountFilter("code:", "BRL", AccountKind.LIABILITY, AccountStatus.ACTIVE, "bob"),
            lambda one: (
                one.code is not None
                and (one.currency, one.kind, one.owner) == ("BRL", AccountKind.LIABILITY, "bob")
            ),
        ),
    ]
    for wanted, matches in filters:
        expected = [one for one in made if matches(one)]
        assert await books.reader.count_accounts(AUDITOR, wanted) == len(expected)
        for limit in (1, 4, 20):
            for backward in (False, True):
                met = await walk(
                    lambda request, wanted=wanted: books.reader.accounts_page(
                        AUDITOR, wanted, request
                    ),
                    limit,
                    backward=backward,
                )
                assert met == expected
    monkeypatch.setattr(pages, "COUNT_BOUND", len(made))
    assert await books.reader.count_accounts(AUDITOR, AccountFilter(currency="JPY")) == 4
    monkeypatch.setattr(pages, "COUNT_BOUND", len(made) - 1)
    assert await books.reader.count_accounts(AUDITOR, AccountFilter(currency="JPY")) is None
    assert await books.reader.count_accounts(AUDITOR, AccountFilter(owner="alice")) == 5


async def test_all_transactions_are_paged_newest_first(books: RunningLedger) -> None:
    alice, bob = await books.wallet("alice"), await books.wallet("bob")
    made: list[Transaction] = []
    for number in range(1, 10):
        deposit = await books.deposit(alice.account, 10 * number)
        sent = posted(await books.transfer(alice, bob, number))
        made = [sent.transaction, deposit.transaction, *made]
    middle = made[7].posted_at
    filters: list[tuple[TransactionFilter, Callable[[Transaction], bool]]] = [
        (TransactionFilter(), lambda _: True),
        (TransactionFilter(types=("transfer",)), lambda one: one.type == "transfer"),
        (TransactionFilter(types=("transfer", "deposit")), lambda _: True),
        (TransactionFilter(types=()), lambda _: False),
        (TransactionFilter(types=("refund",)), lambda _: False),
        (TransactionFilter(posted_from=middle), lambda one: one.posted_at >= middle),
        (TransactionFilter(posted_from=middle + TICK), lambda one: one.posted_at > middle),
        (TransactionFilter(posted_before=middle), lambda one: one.posted_at < middle),
        (TransactionFilter(posted_before=middle + TICK), lambda one: one.posted_at <= middle),
        (
            TransactionFilter(("deposit",), made[12].posted_at, made[3].posted_at),
            lambda one: (
                one.type == "deposit" and made[12].posted_at <= one.posted_at < made[3].posted_at
            ),
        ),
    ]
    for wanted, matches in filters:
        for limit in (1, 5, 20):
            for backward in (False, True):
                met = await walk(
                    lambda request, wanted=wanted: books.reader.transactions_page(
                        AUDITOR, wanted, request
                    ),
                    limit,
                    backward=backward,
                )
                assert met == [one for one in made if matches(one)]
    between = await books.reader.transactions_page(
        AUDITOR, TransactionFilter(), PageRequest(5, after=made[2].id, before=made[6].id)
    )
    assert between == Page(tuple(made[3:6]), has_next=True, has_previous=True)


async def test_a_filter_by_time_forgives_clocks_that_differ_by_less_than_an_hour(
    books: RunningLedger, audited: TestDatabase
) -> None:
    """A transaction is named by one clock and posted by another."""
    alice = await books.wallet("alice")
    shifts = [timedelta(minutes=minutes) for minutes in (-59, 0, 59)]
    made = [(await books.deposit(alice.account, 1)).transaction for _ in shifts]
    async with connect(audited.superuser_url) as connection:
        await connection.execute("set session_replication_role = replica")
        for transaction, shift in zip(made, shifts, strict=True):
            moved = transaction.posted_at + shift
            await connection.execute(
                "update journal set posted_at = $2 where id = $1", transaction.id, moved
            )
            for wanted in (
                TransactionFilter(posted_from=moved),
                TransactionFilter(posted_before=moved + TICK),
                TransactionFilter(None, moved, moved + TICK),
            ):
                page = await books.reader.transactions_page(OPERATOR, wanted, PageRequest(9))
                assert transaction.id in {one.id for one in page.items}

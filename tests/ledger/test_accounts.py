"""Accounts: who may open which, what is refused, and who may see what."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest

from app.ledger import pages
from app.ledger.accounts import OpenAccountCommand
from app.ledger.administration import Opened
from app.ledger.errors import (
    CodeTaken,
    IdempotencyConflict,
    InvalidInput,
)
from app.ledger.model import (
    Account,
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
    Caller,
    Direction,
    MissingScopeError,
    Scope,
)
from app.ledger.money import Money
from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.transfers import TransferCommand
from app.ledger.pages import AccountFilter, PageRequest
from app.ledger.posting.decision import Refused
from tests.support.ledger import (
    OPERATOR,
    RunningLedger,
    contents,
    new_key,
    posted,
    vnd,
    wallet_user,
)

ALICE = wallet_user("alice")

EVERY_SET_OF_SCOPES = [
    frozenset(chosen) for size in range(4) for chosen in combinations(Scope, size)
]


def scoped(subject: str, scopes: frozenset[Scope]) -> Caller:
    return Caller(subject, scopes)


def command(**changes: Any) -> OpenAccountCommand:
    given: dict[str, Any] = {"key": new_key(), "currency": "BRL", "owner": "alice", **changes}
    return OpenAccountCommand(**given)


async def opened(books: RunningLedger, caller: Caller, wanted: OpenAccountCommand) -> Opened:
    answer = await books.ledger.open_account(caller, wanted)
    assert isinstance(answer, Opened), answer
    return answer


# ---------------------------------------------------------------- opening


async def test_a_wallet_starts_empty_and_is_what_was_asked_for(books: RunningLedger) -> None:
    answer = await opened(
        books, ALICE, command(code="alice:main", metadata={"tier": 1, "tags": ["a", None]})
    )

    assert not answer.replayed
    account = answer.account
    assert (account.owner, account.code, account.currency) == ("alice", "alice:main", "BRL")
    assert (account.kind, account.status) == (AccountKind.LIABILITY, AccountStatus.ACTIVE)
    assert account.metadata == {"tier": 1, "tags": ["a", None]}
    assert account.normal_balance is Direction.CREDIT
    assert (await books.reader.accounts(ALICE, [account.id]))[account.id] == account
    assert await books.reader.account_by_code(ALICE, "alice:main") == account
    balance = await books.balance(account)
    assert (balance.available, balance.held, balance.sequence) == (0, 0, 0)


async def test_the_same_key_opens_one_account_even_at_the_same_moment(books: RunningLedger) -> None:
    wanted = command(code="alice:main")

    answers = await asyncio.gather(*(opened(books, ALICE, wanted) for _ in range(20)))

    assert len({answer.account.id for answer in answers}) == 1
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 19
    assert len((await contents(books.url))["account"]) == 1


async def test_a_code_is_taken_once_even_at_the_same_moment(books: RunningLedger) -> None:
    answers = await asyncio.gather(
        *(books.ledger.open_account(ALICE, command(code="shop")) for _ in range(20))
    )

    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert refused == [Refused(CodeTaken(("code",)))] * 19
    after = await contents(books.url)
    assert (len(after["account"]), len(after["idempotency_key"])) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("currency", "USD", "currency"),
        ("code", "other", "code"),
        ("metadata", {"a": 1}, "metadata"),
        ("kind", AccountKind.REVENUE, "kind"),
        ("owner", "bob", "owner"),
        ("allow_negative", True, "allowNegative"),
    ],
)
async def test_a_key_that_stands_for_another_opening_is_a_conflict(
    books: RunningLedger, field: str, value: Any, name: str
) -> None:
    first = command()
    await opened(books, OPERATOR, first)
    before = await contents(books.url)

    assert await books.ledger.open_account(OPERATOR, replace(first, **{field: value})) == Refused(
        IdempotencyConflict(("idempotencyKey",), None, (name,))
    )
    assert await contents(books.url) == before


async def test_one_key_stands_for_one_operation(books: RunningLedger) -> None:
    a, b = await books.wallet("alice", 10), await books.wallet("bob")
    sent = posted(await books.transfer(a, b, 1, key="k"))
    await opened(books, ALICE, command(key="o"))
    before = await contents(books.url)

    assert await books.ledger.open_account(ALICE, command(key="k")) == Refused(
        IdempotencyConflict(("idempotencyKey",), sent.transaction.id, ("operation",))
    )
    assert await books.transfer(a, b, 1, key="o") == Refused(
        IdempotencyConflict(("idempotencyKey",), None, ("operation",))
    )
    assert await contents(books.url) == before


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"key": ""}, "idempotencyKey"),
        ({"key": "k" * 129}, "idempotencyKey"),
        ({"code": ""}, "code"),
        ({"code": "c" * 129}, "code"),
        ({"code": "a\0"}, "code"),
        ({"code": "line\nbreak"}, "code"),
        ({"code": "\ud800"}, "code"),
        ({"owner": ""}, "owner"),
        ({"owner": "o" * 256}, "owner"),
        ({"tracking": BalanceTracking.STRIPED, "stripes": 1}, "stripes"),
        ({"tracking": BalanceTracking.STRIPED, "stripes": 257}, "stripes"),
        ({"tracking": BalanceTracking.DERIVED}, "allowNegative"),
        ({"tracking": BalanceTracking.DERIVED, "allow_negative": True, "stripes": 4}, "stripes"),
        ({"stripes": 4}, "stripes"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"a": "x" * 5_000}}, "metadata"),
        ({"metadata": {"a": "\0"}}, "metadata"),
        ({"currency": "usd"}, "currency"),
        ({"currency": "USD "}, "currency"),
        ({"currency": "XXX"}, "currency"),
        ({"currency": "840"}, "currency"),
        ({"currency": ""}, "currency"),
        ({"currency": "DOLLAR"}, "currency"),
    ],
)
async def test_a_wrong_opening_is_refused_and_leaves_its_key_free(
    books: RunningLedger, changes: dict[str, Any], path: str
) -> None:
    before = await contents(books.url)
    answer = await books.ledger.open_account(OPERATOR, command(**{"key": "k", **changes}))

    assert isinstance(answer, Refused)
    assert isinstance(answer.refusal, InvalidInput)
    assert answer.refusal.path == (path,)
    assert await contents(books.url) == before
    assert not (await opened(books, OPERATOR, command(key="k"))).replayed


async def test_codes_of_the_platform_are_for_the_operator(books: RunningLedger) -> None:
    before = await contents(books.url)

    for caller, asked in (
        (ALICE, command(code="system:mine")),
        (OPERATOR, command(code="system:hers", owner="alice")),
        (OPERATOR, command(code="system:bank_clearing:BRL", owner=None)),
    ):
        answer = await books.ledger.open_account(caller, asked)
        assert isinstance(answer, Refused)
        assert isinstance(answer.refusal, InvalidInput)
        assert answer.refusal.path == ("code",)
    assert await contents(books.url) == before
    await opened(books, OPERATOR, command(code="system:fees", owner=None))


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": "bob"},
        {"owner": None},
        {"kind": AccountKind.ASSET},
        {"kind": AccountKind.REVENUE},
        {"allow_negative": True},
        {"tracking": BalanceTracking.STRIPED},
    ],
)
async def test_only_the_operator_opens_more_than_a_wallet_of_ones_own(
    books: RunningLedger, changes: dict[str, Any]
) -> None:
    before = await contents(books.url)
    for scopes in EVERY_SET_OF_SCOPES:
        if Scope.OPERATE not in scopes:
            with pytest.raises(MissingScopeError):
                await books.ledger.open_account(scoped("alice", scopes), command(**changes))
    assert await contents(books.url) == before


@pytest.mark.parametrize("scopes", EVERY_SET_OF_SCOPES)
async def test_every_command_needs_its_scope(
    books: RunningLedger, scopes: frozenset[Scope]
) -> None:
    caller = scoped("alice", scopes)
    a, b = await books.wallet("alice", 10), await books.wallet("bob")
    transfer = TransferCommand(new_key(), a.id, b.id, vnd(1))
    deposit = DepositCommand(new_key(), a.id, None, vnd(1))
    batch = [replace(transfer, key=new_key())]
    ledger = books.ledger
    attempts = [
        (Scope.WALLET, lambda: ledger.transfer(caller, transfer)),
        (Scope.WALLET, lambda: ledger.transfer_batch(caller, batch, atomic=False)),
        (Scope.OPERATE, lambda: ledger.deposit(caller, deposit, default_clearing=True)),
    ]
    for scope, attempt in attempts:
        before = await contents(books.url)
        if scope in scopes:
            await attempt()
            assert await contents(books.url) != before
        else:
            with pytest.raises(MissingScopeError) as caught:
                await attempt()
            assert caught.value.scopes == (scope,)
            assert await contents(books.url) == before


# ---------------------------------------------------------------- currencies


async def test_the_smallest_unit_of_each_currency_is_kept(books: RunningLedger) -> None:
    for currency, minor_units, written in [
        ("JPY", 1, "1"),
        ("KWD", 1_234, "1.234"),
        ("USD", 1, "0.01"),
    ]:
        wallet = await books.wallet("alice", minor_units, currency)
        assert Money(await books.available(wallet), currency).decimal == written
        (entry,) = await books.reader.entries_after(wallet.account, 0, 1)
        assert Money(entry.amount, entry.account.currency).decimal == written


@pytest.mark.parametrize("money", [Money(0, "USD"), Money(1, "XXX"), Money(1, "usd")])
async def test_a_refused_deposit_leaves_no_row_of_any_kind(
    books: RunningLedger, money: Money
) -> None:
    """Not even a clearing account, where the currency had none yet."""
    wallet = await books.wallet("alice")
    before = await contents(books.url)

    answer = await books.ledger.deposit(
        OPERATOR, DepositCommand(new_key(), wallet.id, None, money), default_clearing=True
    )

    assert isinstance(answer, Refused)
    assert await contents(books.url) == before


async def test_the_clearing_account_grows_when_money_comes_in(books: RunningLedger) -> None:
    wallet = await books.wallet("alice", 700)
    clearing = await books.reader.account_by_code(OPERATOR, "system:bank_clearing:VND")

    assert clearing is not None
    assert (clearing.kind, clearing.allow_negative, clearing.owner) == (
        AccountKind.ASSET,
        True,
        None,
    )
    stored = await books.available(clearing)
    assert (stored, clearing.from_normal_side(stored)) == (-700, 700)
    assert clearing.normal_balance is Direction.DEBIT
    assert await books.available(wallet) == 700


async def test_the_first_deposits_of_a_currency_share_one_clearing_account(
    books: RunningLedger,
) -> None:
    wallets = [await books.wallet("alice") for _ in range(10)]

    answers = await asyncio.gather(*(books.deposit(wallet.account, 5) for wallet in wallets))

    assert len({answer.transaction.legs[0].account_id for answer in answers}) == 1


# ---------------------------------------------------------------- who sees what


@pytest.mark.parametrize("scopes", EVERY_SET_OF_SCOPES)
async def test_who_may_read_an_account_and_see_a_transaction(
    books: RunningLedger, scopes: frozenset[Scope]
) -> None:
    a, b = await books.wallet("alice", 10), await books.wallet("bob")
    unseen = await books.wallet("dave", 5)
    sent = posted(await books.transfer(a, b, 1, key="k")).transaction
    clearing = await books.reader.account_by_code(OPERATOR, "system:bank_clearing:VND")
    assert clearing is not None
    ids = [a.id, b.id, unseen.id, clearing.id, UUID(int=1)]
    audits, owns = Scope.AUDIT in scopes, Scope.WALLET in scopes

    for subject, mine in (("alice", [a]), ("bob", [b]), ("eve", [])):
        caller = scoped(subject, scopes)
        readable = set(ids[:4]) if audits else {w.id for w in mine} if owns else set[UUID]()
        assert set(await books.reader.accounts(caller, ids)) == readable
        assert await books.reader.account_by_code(caller, "system:bank_clearing:VND") == (
            clearing if audits else None
        )
        for wallet in (a, b, unseen):
            entry = await books.reader.entry(caller, wallet.id, 1)
            assert (entry is not None) == (wallet.id in readable)
        # Whoever made a transaction sees it, also where the token no longer reads the account; a token without any scope
        # allows nothing.
        made = subject == "alice" and bool(scopes)
        visible = audits or made or (owns and subject == "bob")
        seen = await books.reader.transactions(caller, [sent.id, UUID(int=1)])
        assert seen == ({sent.id: sent} if visible else {})
        if scopes:
            by_key = await books.reader.transaction_by_key(caller, "k")
            assert by_key == (sent if made else None)
        else:
            with pytest.raises(MissingScopeError):
                await books.reader.transaction_by_key(caller, "k")


def test_nobody_owns_an_account_of_the_platform() -> None:
    account = Account(
        id=UUID(int=1),
        parent_id=None,
        purpose=AccountPurpose.MAIN,
        code=None,
        owner=None,
        kind=AccountKind.LIABILITY,
        currency="VND",
        status=AccountStatus.ACTIVE,
        allow_negative=False,
        tracking=BalanceTracking.TRACKED,
        metadata=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )

    assert not wallet_user("").may_read(account)
    assert not wallet_user("None").may_read(account)
    assert Caller("eve", frozenset({Scope.AUDIT})).may_read(account)
    assert not Caller("eve", frozenset({Scope.OPERATE})).may_read(account)


async def test_a_payee_is_anybody_with_a_code_and_an_owner(books: RunningLedger) -> None:
    shop = await books.open(owner="bob", code="shop")
    await books.open(owner=None, code="system:fees")

    assert await books.reader.payee("shop") == shop
    assert await books.reader.payee("system:fees") is None
    assert await books.reader.payee("nobody") is None


# ---------------------------------------------------------------- one's own accounts


async def test_ones_own_accounts_are_paged_in_the_order_of_their_opening(
    books: RunningLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        await books.open(
            owner="alice",
            currency="BRL" if number % 2 else "JPY",
            code=f"alice:{number}" if number % 3 else None,
            kind=AccountKind.LIABILITY if number % 5 else AccountKind.ASSET,
        )
        for number in range(11)
    ]
    await books.open(owner="bob")
    filters: list[tuple[AccountFilter, list[Account]]] = [
        (AccountFilter(), made),
        (AccountFilter(currency="BRL"), [one for one in made if one.currency == "BRL"]),
        (AccountFilter(code_prefix="alice:1"), [made[1], made[10]]),
        (AccountFilter(code_prefix="%"), []),
        (AccountFilter(kind=AccountKind.ASSET), [made[0], made[5], made[10]]),
        (AccountFilter(status=AccountStatus.FROZEN), []),
        (
            AccountFilter("alice:", "JPY", AccountKind.LIABILITY, AccountStatus.ACTIVE),
            [made[2], made[4], made[8]],
        ),
    ]
    for wanted, expected in filters:
        count = await books.reader.count_own_accounts(ALICE, wanted)
        assert count == len(expected)
        for limit in (1, 3, 20):
            for backward in (False, True):
                met: list[Account] = []
                request: PageRequest[UUID] = PageRequest(limit, backward=backward)
                while True:
                    page = await books.reader.own_accounts(ALICE, wanted, request)
                    met = [*page.items, *met] if backward else [*met, *page.items]
                    assert len(page.items) <= limit
                    if not (page.has_previous if backward else page.has_next):
                        break
                    request = (
                        PageRequest(limit, before=page.items[0].id, backward=True)
                        if backward
                        else PageRequest(limit, after=page.items[-1].id)
                    )
                assert met == expected
    assert (
        await books.reader.own_accounts(
            Caller("alice", frozenset()), AccountFilter(), PageRequest(5)
        )
    ).items == ()
    monkeypatch.setattr(pages, "COUNT_BOUND", len(made))
    assert await books.reader.count_own_accounts(ALICE, AccountFilter(currency="BRL")) == 5
    monkeypatch.setattr(pages, "COUNT_BOUND", len(made) - 1)
    assert await books.reader.count_own_accounts(ALICE, AccountFilter(currency="BRL")) is None

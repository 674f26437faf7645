"""A ledger that runs for one test: an engine at work, people who own wallets, and what the tables hold."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prometheus_client import REGISTRY
from uuid_utils.compat import uuid7

from app.database import Database
from app.driver import DriverConnections
from app.ledger.accounts import OpenAccountCommand
from app.ledger.administration import Opened
from app.ledger.answers import PostingAnswer
from app.ledger.model import Account, AccountKind, Balance, Caller, Scope
from app.ledger.money import Money
from app.ledger.movements.deposits import DepositCommand
from app.ledger.movements.transfers import TransferCommand
from app.ledger.posting.decision import Posted
from app.ledger.posting.engine import EngineLimits, PostingEngine
from app.ledger.reader import Reader
from app.ledger.reading.lookups import Lookups
from app.ledger.service import Ledger
from app.ledger.upkeep import Upkeep
from tests.support.postgres import connect

CURRENCY = "VND"

OPERATOR = Caller("operator", frozenset(Scope))

PATIENT = EngineLimits(deadline_ms=30_000)
"""For tests on a busy machine, where being turned away is not what is tried."""

_keys = itertools.count(1)

_CONTENTS = """
select
  array(select cast(a as text) from account as a order by a.id) as account,
  array(select cast(j as text) from journal as j order by j.id) as journal,
  array(select cast(e as text) from entry as e order by e.account_id, e.sequence) as entry,
  array(select cast(k as text) from idempotency_key as k order by k.caller, k.key) as idempotency_key,
  array(select cast(h as text) from hold as h order by h.id) as hold,
  array(select cast(c as text) from account_status_change as c order by c.id) as account_status_change,
  array(select cast(o as text) from outbox as o order by o.id) as outbox,
  array(select cast(e as text) from event as e order by e.position) as event
"""


def wallet_user(subject: str) -> Caller:
    return Caller(subject, frozenset({Scope.WALLET}))


def new_key() -> str:
    """Make a key that no other call has made in this process."""
    return f"key {next(_keys)}"


def new_id() -> UUID:
    return uuid7()


def vnd(minor_units: int) -> Money:
    return Money(minor_units, CURRENCY)


async def contents(url: str) -> Mapping[str, list[str]]:
    """Read every row of every table of the ledger, all at one instant, to compare before and after."""
    async with connect(url) as connection:
        return dict((await connection.fetch(_CONTENTS))[0].items())


def metric(name: str, **labels: str) -> float:
    """Read a metric of this process; 0 where nothing was counted yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


def posted(answer: PostingAnswer) -> Posted:
    """Take it for granted that the answer is a posting."""
    assert isinstance(answer, Posted), answer
    return answer


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet together with the one who owns it."""

    account: Account
    owner: Caller

    @property
    def id(self) -> UUID:
        return self.account.id


@dataclass(frozen=True, slots=True)
class RunningLedger:
    """A ledger whose engine is at work, with short ways to do what most tests do."""

    ledger: Ledger
    reader: Reader
    upkeep: Upkeep
    engine: PostingEngine
    postings: DriverConnections
    """The engine's pool."""
    url: str
    working: "asyncio.Future[None]" = field(repr=False)
    """The engine's `run()`."""

    async def open(self, **command: Any) -> Account:
        """Open an account as the operator."""
        given: dict[str, Any] = {"key": new_key(), "currency": CURRENCY, "owner": None, **command}
        opened = await self.ledger.open_account(OPERATOR, OpenAccountCommand(**given))
        assert isinstance(opened, Opened), opened
        assert not opened.replayed
        return opened.account

    async def wallet(self, owner: str, funds: int = 0, currency: str = CURRENCY) -> Wallet:
        """Open a wallet and put money in it."""
        account = await self.open(owner=owner, currency=currency)
        if funds:
            await self.deposit(account, funds)
        return Wallet(account, wallet_user(owner))

    async def clearing(self, currency: str = CURRENCY) -> Account:
        """Open an account that may fall below zero on the platform's side."""
        return await self.open(currency=currency, kind=AccountKind.ASSET, allow_negative=True)

    async def deposit(
        self, account: Account, minor_units: int, clearing: Account | None = None, **command: Any
    ) -> Posted:
        """Bring money in from outside, through the platform's clearing account or another."""
        answer = await self.ledger.deposit(
            OPERATOR,
            DepositCommand(
                key=new_key(),
                account_id=account.id,
                clearing_account_id=None if clearing is None else clearing.id,
                amount=Money(minor_units, account.currency),
                **command,
            ),
            default_clearing=clearing is None,
        )
        return posted(answer)

    async def transfer(
        self,
        source: Wallet,
        target: Wallet | Account,
        minor_units: int,
        *,
        key: str | None = None,
        **command: Any,
    ) -> PostingAnswer:
        """Move money as the source's owner."""
        return await self.ledger.transfer(
            source.owner,
            TransferCommand(
                key=key or new_key(),
                from_account_id=source.id,
                to_account_id=target.id,
                amount=Money(minor_units, source.account.currency),
                **command,
            ),
        )

    async def balance(self, account: Wallet | Account) -> Balance:
        return (await self.reader.balances([account.id]))[account.id]

    async def available(self, account: Wallet | Account) -> int:
        return (await self.balance(account)).available


@contextlib.asynccontextmanager
async def running_ledger(
    url: str, limits: EngineLimits = PATIENT, *, statement_timeout_ms: int = 5_000
) -> AsyncGenerator[RunningLedger]:
    """Run a ledger on a database until the block is left; the engine first posts what is queued."""
    postings = DriverConnections(
        url, statement_timeout_ms=statement_timeout_ms, application_name="saldo-postings"
    )
    reads = Database(url, pool_size=5, pool_timeout_ms=30_000, application_name="saldo-reads")
    engine = PostingEngine(postings, limits)
    working = asyncio.ensure_future(engine.run())
    try:
        lookups = Lookups(postings)
        yield RunningLedger(
            Ledger(reads, engine, lookups, new_id),
            Reader(reads),
            Upkeep(reads, engine, lookups, new_id),
            engine,
            postings,
            url,
            working,
        )
    finally:
        engine.close()
        try:
            with contextlib.suppress(asyncio.CancelledError):  # where the test has cancelled it
                await working
        finally:
            await postings.close()
            await reads.close()

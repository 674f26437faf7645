"""Opening balances: what accounts had before Saldo kept them, booked against the equity of their currency.

Identity. An account gets one opening balance ever. Its key is made from the account's id alone and booked in the ledger's
own name, so that neither another file, nor another amount, nor another caller can book a second one.

Order. An account is opened before its balance is booked, in a transaction of its own. Whatever ends the process in
between, the next run finds the account without an opening balance and goes on from there.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import orjson

from app.database import Database, DatabaseUnavailableError, load_statements
from app.ledger.accounts import OPENING_PREFIX
from app.ledger.errors import LedgerUnavailableError, Refusal
from app.ledger.model import Account, AccountKind, Json
from app.ledger.money import Money
from app.ledger.movements.openings import opening
from app.ledger.posting.decision import Refused
from app.ledger.posting.engine import PostingEngine
from app.ledger.requests import LEDGER_CALLER, PostingRequest
from app.ledger.rows import AnyRow, account_of
from app.ledger.system_accounts import SystemAccounts

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "openings.sql")

_KEY_PREFIX: Final = "opening "
_CODES_AT_ONCE: Final = 1_000


def equity_code(currency: str) -> str:
    """Name the account on the other side of the opening balances of a currency."""
    return f"{OPENING_PREFIX}{currency}"


@dataclass(frozen=True, slots=True)
class OpeningBalance:
    """An account as it is to begin."""

    code: str
    owner: str | None
    """None for the platform."""
    kind: AccountKind
    amount: Money
    """Seen from the account's normal side, never negative; zero books nothing."""
    metadata: Json | None = None
    """What the transaction tells of its origin."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An account that is there, and what it began with."""

    account: Account
    balance: int
    """Signed, credit positive, minor units; 0 where the account is hot."""
    opened_with: int | None
    """Its opening balance, seen from its normal side; None where none was booked."""


def differing_facts(asked: OpeningBalance, account: Account) -> tuple[str, ...]:
    """Name what an account is otherwise than asked for; whoever finds something must not give it that balance."""
    facts = (
        ("owner", asked.owner, account.owner),
        ("kind", asked.kind, account.kind),
        ("currency", asked.amount.currency, account.currency),
    )
    return tuple(name for name, wanted, found in facts if wanted != found)


class Openings:
    """Opens accounts together with what they begin with, many at a time."""

    def __init__(
        self,
        database: Database,
        engine: PostingEngine,
        system_accounts: SystemAccounts,
        new_id: Callable[[], UUID],
    ) -> None:
        """Take a pool for reading and opening, the engine for posting, and the maker of UUIDv7 ids."""
        self._database = database
        self._engine = engine
        self._system_accounts = system_accounts
        self._new_id = new_id

    async def standings(self, codes: Sequence[str]) -> Mapping[str, Standing]:
        """Find the accounts that bear these codes; a code that nobody bears is missing. Raises LedgerUnavailableError."""
        found: dict[str, Standing] = {}
        for first in range(0, len(codes), _CODES_AT_ONCE):
            found |= await self._standings(codes[first : first + _CODES_AT_ONCE])
        return found

    async def book(self, balances: Sequence[OpeningBalance]) -> Mapping[str, Refusal]:
        """Open the accounts that are missing and book what each begins with; returns what was refused, by code.

        An account that is there with other facts, or that has its opening balance, is left as it is. All are handed to
        the engine at once, so there may be no more than its queue takes. Raises LedgerUnavailableError and
        LedgerIncidentError; the same balances may then be given again, as at any time.
        """
        await self._open(balances)
        standings = await self._standings([each.code for each in balances])
        refusals: dict[str, Refusal] = {}
        requests: dict[str, PostingRequest] = {}
        for each in balances:
            standing = standings[each.code]
            if (
                each.amount.minor_units == 0
                or standing.opened_with is not None
                or differing_facts(each, standing.account)
            ):
                continue
            match await self._request(each, standing.account):
                case PostingRequest() as request:
                    requests[each.code] = request
                case refusal:
                    refusals[each.code] = refusal
        outcomes = await asyncio.gather(
            *(self._engine.post((request,)) for request in requests.values())
        )
        for code, (outcome,) in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Refused):
                refusals[code] = outcome.refusal
        return refusals

    async def _request(self, asked: OpeningBalance, account: Account) -> PostingRequest | Refusal:
        return opening(
            account,
            asked.amount,
            await self._system_accounts.opening(asked.amount.currency),
            f"{_KEY_PREFIX}{account.id}",
            LEDGER_CALLER,
            self._new_id(),
            asked.metadata,
        )

    async def _open(self, balances: Sequence[OpeningBalance]) -> None:
        rows = orjson.dumps(
            [
                {
                    "id": self._new_id(),
                    "code": each.code,
                    "owner": each.owner,
                    "kind": each.kind,
                    "currency": each.amount.currency,
                }
                for each in balances
            ]
        ).decode()
        try:
            async with self._database.transaction() as connection:
                await connection.execute(_SQL["insert_accounts"], {"accounts": rows})
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error

    async def _standings(self, codes: Sequence[str]) -> Mapping[str, Standing]:
        values = {"codes": list(codes), "caller": LEDGER_CALLER, "key_prefix": _KEY_PREFIX}
        try:
            async with self._database.read_only() as connection:
                rows = (await connection.execute(_SQL["standings"], values)).all()
        except DatabaseUnavailableError as error:
            raise LedgerUnavailableError from error
        return {row.code: _standing_of(row) for row in rows}


def _standing_of(row: AnyRow) -> Standing:
    account = account_of(row)
    opened_with = row.opened_with
    return Standing(
        account,
        row.balance,
        None if opened_with is None else account.from_normal_side(opened_with),
    )

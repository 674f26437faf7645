"""Opening accounts: what a caller asks for, judged by its own rules, and the statements that carry it out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import load_statements
from app.ledger.children import STRIPES, STRIPES_DEFAULT, stripe_ids
from app.ledger.errors import InvalidInput, Refusal
from app.ledger.idempotency import Fingerprint, fingerprint
from app.ledger.model import Account, AccountKind, BalanceTracking, Caller, Json, Scope
from app.ledger.money import EXPONENTS
from app.ledger.rows import account_of, encode_json
from app.ledger.rules import CURRENCY_RULE, refuse_key, refuse_metadata, refuse_text

_SQL: Final = load_statements(Path(__file__).parent / "sql" / "accounts.sql")

CODE_LIMIT: Final = 128
OWNER_LIMIT: Final = 255
RESERVED_PREFIX: Final = "system:"
"""Codes that begin so belong to the platform, so that nobody can receive what is meant for it."""

CLEARING_PREFIX: Final = "system:bank_clearing:"
"""Codes of the accounts that Saldo itself opens, on the first deposit of a currency."""

OPENING_PREFIX: Final = "system:opening:"
"""Codes of the accounts against which opening balances are booked, opened by Saldo itself as well."""


@dataclass(frozen=True, slots=True)
class OpenAccountCommand:
    """Open an account; what only OPERATE may ask for is judged by `required_scopes`."""

    key: str
    currency: str
    owner: str | None
    """Subject that owns the account; None for the platform."""
    code: str | None = None
    kind: AccountKind = AccountKind.LIABILITY
    allow_negative: bool = False
    tracking: BalanceTracking = BalanceTracking.TRACKED
    stripes: int | None = None
    metadata: Json | None = None


def stripes_of(command: OpenAccountCommand) -> int | None:
    """Return how many children the account gets; None where it isn't striped."""
    if command.tracking is not BalanceTracking.STRIPED:
        return None
    return STRIPES_DEFAULT if command.stripes is None else command.stripes


def required_scopes(command: OpenAccountCommand, caller: Caller) -> tuple[Scope, ...]:
    """Tell which scopes allow this: anything but an ordinary wallet of one's own needs OPERATE."""
    ordinary = (
        command.kind is AccountKind.LIABILITY
        and command.owner == caller.subject
        and not command.allow_negative
        and command.tracking is BalanceTracking.TRACKED
    )
    return (Scope.WALLET, Scope.OPERATE) if ordinary else (Scope.OPERATE,)


def refuse_opening(command: OpenAccountCommand, caller: Caller) -> Refusal | None:
    """Judge what the command says of itself."""
    return (
        refuse_key(command.key)
        or _refuse_currency(command.currency)
        or _refuse_name(command.code, CODE_LIMIT, "code")
        or _refuse_name(command.owner, OWNER_LIMIT, "owner")
        or _refuse_reserved(command, caller)
        or _refuse_tracking(command)
        or refuse_metadata(command.metadata)
    )


def opening_fingerprint(command: OpenAccountCommand) -> Fingerprint:
    """Reduce the command to what makes it the same request; the owner is the resolved one."""
    return fingerprint(
        "openAccount",
        {
            "currency": command.currency,
            "code": command.code,
            "kind": command.kind,
            "owner": command.owner,
            "allowNegative": command.allow_negative,
            "tracking": command.tracking,
            "stripes": stripes_of(command),
            "metadata": command.metadata,
        },
    )


async def insert_account_in_tx(
    connection: AsyncConnection, account_id: UUID, command: OpenAccountCommand
) -> Account | None:
    """Insert the account; None means that its code is taken."""
    row = (
        await connection.execute(
            _SQL["insert_account"],
            {
                "id": account_id,
                "code": command.code,
                "owner": command.owner,
                "kind": command.kind,
                "currency": command.currency,
                "allow_negative": command.allow_negative,
                "tracking": command.tracking,
                "stripes": stripes_of(command),
                "metadata": encode_json(command.metadata),
            },
        )
    ).one_or_none()
    if row is None:
        return None
    account = account_of(row)
    if account.stripes is not None:
        await connection.execute(
            _SQL["insert_stripes"],
            {
                "ids": list(stripe_ids(account.id, account.stripes)),
                "parent_id": account.id,
                "kind": account.kind,
                "currency": account.currency,
                "allow_negative": account.allow_negative,
            },
        )
    return account


async def insert_account_key_in_tx(
    connection: AsyncConnection, caller: str, key: str, asked: Fingerprint, account_id: UUID
) -> bool:
    """Book the key for the account; False means that the key was booked meanwhile."""
    result = await connection.execute(
        _SQL["insert_account_key"],
        {
            "caller": caller,
            "key": key,
            "operation": asked.operation,
            "fingerprint": asked.sha256,
            "fields": encode_json(asked.fields),
            "account_id": account_id,
        },
    )
    return result.one_or_none() is not None


def _refuse_currency(currency: str) -> Refusal | None:
    if currency in EXPONENTS:
        return None
    return InvalidInput(("currency",), CURRENCY_RULE)


def _refuse_name(name: str | None, limit: int, field: str) -> Refusal | None:
    if name is None:
        return None
    if not name or not name.isprintable() or name != name.strip():
        return InvalidInput(
            (field,), f"must be 1 to {limit} printable characters, none of them a space at an end"
        )
    return refuse_text(name, limit, (field,))


def _refuse_reserved(command: OpenAccountCommand, caller: Caller) -> Refusal | None:
    code = None if command.code is None else command.code.casefold()
    if code is None or not code.startswith(RESERVED_PREFIX):
        return None
    for prefix in (CLEARING_PREFIX, OPENING_PREFIX):
        if code.startswith(prefix):
            return InvalidInput(("code",), f"must not begin with {prefix}")
    if Scope.OPERATE in caller.scopes and command.owner is None:
        return None
    return InvalidInput(
        ("code",),
        f"must not begin with {RESERVED_PREFIX}, unless OPERATE opens it for the platform",
    )


def _refuse_tracking(command: OpenAccountCommand) -> Refusal | None:
    if command.tracking is not BalanceTracking.STRIPED and command.stripes is not None:
        return InvalidInput(("stripes",), "must be left out unless tracking is STRIPED")
    if command.stripes is not None and command.stripes not in STRIPES:
        return InvalidInput(("stripes",), f"must be {STRIPES.start} to {STRIPES.stop - 1}")
    if command.tracking is BalanceTracking.DERIVED and not command.allow_negative:
        return InvalidInput(
            ("allowNegative",),
            "must be true where tracking is DERIVED: no balance is kept to judge",
        )
    return None

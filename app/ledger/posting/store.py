"""The statements of the posting path, one function each; all take the connection of an open transaction first."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import orjson

from app.driver import Connection, DriverStatement, load_driver_statements
from app.ledger.idempotency import KnownKey
from app.ledger.model import Account, Hold
from app.ledger.posting.changes import Booking
from app.ledger.posting.decision import Decision
from app.ledger.posting.outbox import touched_accounts
from app.ledger.posting.standing import CallerKey, LockedAccount, TakenBack
from app.ledger.rows import account_of, hold_of, known_key_of

_SQL: Final = load_driver_statements(Path(__file__).parent / "sql" / "posting.sql")


class KeyRaceError(Exception):
    """Another process has booked a key of this batch since the look for known keys."""


async def lock_accounts_in_tx(
    connection: Connection, ids: Collection[UUID], parents: Collection[UUID]
) -> Mapping[UUID, LockedAccount]:
    """Lock the rows of these accounts, in order, until the transaction ends.

    Ids that name nothing are missing, and so are hot accounts unless they are among the `parents`.
    """
    values = {"ids": list(ids), "parents": list(parents)}
    return _locked(await _fetch(connection, _SQL["lock_accounts"], values))


async def hot_accounts(connection: Connection, ids: Collection[UUID]) -> Sequence[Account]:
    """Read those of the accounts that are hot, without a lock."""
    return [
        account_of(row)
        for row in await _fetch(connection, _SQL["hot_accounts"], {"ids": list(ids)})
    ]


async def enter_hot_in_tx(connection: Connection, derived: Collection[UUID]) -> None:
    """Announce that this transaction is about to take a stamp, and let no status of these derived accounts change meanwhile."""
    await _fetch(connection, _SQL["enter_hot"], {"derived": list(derived)})


async def derived_accounts(
    connection: Connection, ids: Collection[UUID]
) -> Mapping[UUID, LockedAccount]:
    """Read derived accounts, whose rows nobody locks."""
    return _locked(await _fetch(connection, _SQL["derived_accounts"], {"ids": list(ids)}))


async def known_keys_in_tx(
    connection: Connection, keys: Sequence[CallerKey], *, stamped: bool
) -> tuple[datetime, int, Mapping[CallerKey, KnownKey]]:
    """Read the database's clock (UTC), a base for stamps where `stamped`, and those of the keys that are booked already."""
    rows = await _fetch(
        connection,
        _SQL["known_keys"],
        {
            "callers": [caller for caller, _ in keys],
            "keys": [key for _, key in keys],
            "stamped": stamped,
        },
    )
    first = rows[0]
    return (
        first["now"],
        first["stamp_base"],
        {(row["caller"], row["key"]): known_key_of(row) for row in rows if row["key"] is not None},
    )


async def holds_in_tx(connection: Connection, ids: Iterable[UUID]) -> Mapping[UUID, Hold]:
    """Read these holds, whose accounts are locked."""
    rows = await _fetch(connection, _SQL["holds"], {"ids": list(ids)})
    return {row["id"]: hold_of(row) for row in rows}


async def taken_back_in_tx(connection: Connection, ids: Iterable[UUID]) -> Mapping[UUID, TakenBack]:
    """Read what was reversed or refunded of these transactions; those of which nothing was are missing."""
    rows = await _fetch(connection, _SQL["taken_back"], {"ids": list(ids)})
    return {
        row["reverses_id"]: TakenBack(row["times"], int(row["amount"]), row["reversed"])
        for row in rows
    }


async def write_postings_in_tx(connection: Connection, decision: Decision) -> None:
    """Write all rows of a decision; raises KeyRaceError where a key was booked elsewhere meanwhile.

    Nothing may stand then: let the exception leave the transaction.
    """
    if decision.opened:
        children = _encode([_child_row(account) for account in decision.opened])
        await _fetch(connection, _SQL["open_children"], {"children": children})
    bookings = decision.bookings
    rows = await _fetch(
        connection,
        _SQL["write_postings"],
        {
            "posted_at": decision.posted_at,
            "accounts": _encode(
                [
                    {"id": account_id, "balance": balance, "sequence": sequence}
                    for account_id, (balance, sequence) in decision.moved.items()
                ]
            ),
            "transactions": _encode(
                [_transaction_row(nth, booking) for nth, booking in enumerate(bookings)]
            ),
            "entries": _encode(
                [
                    {
                        "account_id": line.row.id,
                        "sequence": line.sequence,
                        "transaction_id": booking.request.id,
                        "leg": leg,
                        "currency": line.row.currency,
                        "amount": line.amount,
                        "balance_after": line.balance_after,
                    }
                    for booking in bookings
                    for leg, line in enumerate(booking.lines)
                ]
            ),
        },
    )
    if rows[0]["new_keys"] != len(bookings):
        raise KeyRaceError
    if decision.placed:
        placed = _encode([_placed_row(hold) for hold in decision.placed])
        await _fetch(connection, _SQL["place_holds"], {"holds": placed})
    if decision.closed:
        closed = _encode([_closed_row(hold) for hold in decision.closed])
        await _fetch(connection, _SQL["close_holds"], {"holds": closed})


async def _fetch(
    connection: Connection, statement: DriverStatement, values: Mapping[str, Any]
) -> list[asyncpg.Record]:
    return await connection.fetch(statement.sql, *statement.arguments(values))


def _locked(rows: Iterable[asyncpg.Record]) -> dict[UUID, LockedAccount]:
    return {
        row[0]: LockedAccount(
            account_of(row),
            balance=row["balance"],
            sequence=row["sequence"],
            posted_at=row["posted_at"],
            stripe=row["stripe"],
        )
        for row in rows
    }


def _transaction_row(nth: int, booking: Booking) -> Mapping[str, Any]:
    request, transaction = booking.request, booking.posted.transaction
    touched = touched_accounts(booking.lines)
    return {
        "nth": nth,
        "id": transaction.id,
        "type": transaction.type,
        "caller": transaction.caller,
        "description": transaction.description,
        "external_reference": transaction.external_reference,
        "metadata": transaction.metadata,
        "reverses_id": transaction.reverses_id,
        "reversal_number": booking.reversal_number,
        "hold_id": transaction.hold_id,
        "effective_at": request.effective_at,
        "key": request.key,
        "operation": request.fingerprint.operation,
        "fingerprint": request.fingerprint.sha256.hex(),
        "fields": request.fingerprint.fields,
        "touched_ids": list(touched),
        "touched_sequences": list(touched.values()),
    }


def _child_row(account: Account) -> Mapping[str, Any]:
    return {
        "id": account.id,
        "parent_id": account.parent_id,
        "purpose": account.purpose,
        "kind": account.kind,
        "currency": account.currency,
    }


def _placed_row(hold: Hold) -> Mapping[str, Any]:
    return {
        "id": hold.id,
        "account_id": hold.account_id,
        "purpose": hold.purpose,
        "currency": hold.currency,
        "amount": hold.amount,
        "expires_at": hold.expires_at,
        "description": hold.description,
        "metadata": hold.metadata,
        "external_reference": hold.external_reference,
        "created_at": hold.created_at,
    }


def _closed_row(hold: Hold) -> Mapping[str, Any]:
    return {
        "id": hold.id,
        "status": hold.status,
        "captured": hold.captured,
        "external_reference": hold.external_reference,
        "failure_reason": hold.failure_reason,
        "closed_at": hold.closed_at,
    }


def _encode(rows: Sequence[Mapping[str, Any]]) -> str:
    # The driver has a UUID class of its own, which orjson does not know.
    return orjson.dumps(rows, default=str).decode()

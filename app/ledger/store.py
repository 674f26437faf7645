"""The statements of the posting path, one function each; all take the connection of an open transaction first."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import orjson

from app.driver import Connection, DriverStatement, load_driver_statements
from app.ledger.idempotency import KnownKey
from app.ledger.outbox import touched_accounts
from app.ledger.posting import Booking, CallerKey, Decision, LockedAccount
from app.ledger.rows import account_of, known_key_of

_SQL: Final = load_driver_statements(Path(__file__).parent / "sql" / "posting.sql")


class KeyRaceError(Exception):
    """Another process has booked a key of this batch since the look for known keys."""


async def lock_accounts_in_tx(
    connection: Connection, ids: Iterable[UUID]
) -> Mapping[UUID, LockedAccount]:
    """Lock the rows of these accounts, in order, until the transaction ends; ids that name nothing are missing."""
    rows = await _fetch(connection, _SQL["lock_accounts"], {"ids": list(ids)})
    return {
        row[0]: LockedAccount(account_of(row), balance=row[12], sequence=row[13], posted_at=row[14])
        for row in rows
    }


async def known_keys_in_tx(
    connection: Connection, keys: Sequence[CallerKey]
) -> tuple[datetime, Mapping[CallerKey, KnownKey]]:
    """Read the database's clock (UTC) and those of the keys that are booked already."""
    rows = await _fetch(
        connection,
        _SQL["known_keys"],
        {"callers": [caller for caller, _ in keys], "keys": [key for _, key in keys]},
    )
    return rows[0]["now"], {
        (row["caller"], row["key"]): known_key_of(row) for row in rows if row["key"] is not None
    }


async def write_postings_in_tx(connection: Connection, decision: Decision) -> None:
    """Write all rows of a decision; raises KeyRaceError where a key was booked elsewhere meanwhile.

    Nothing may stand then: let the exception leave the transaction.
    """
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
                        "account_id": entry.account.id,
                        "sequence": entry.sequence,
                        "transaction_id": entry.transaction_id,
                        "leg": leg,
                        "currency": entry.account.currency,
                        "amount": entry.amount,
                        "balance_after": entry.balance_after,
                    }
                    for booking in bookings
                    for leg, entry in enumerate(booking.posted.entries)
                ]
            ),
        },
    )
    if rows[0]["new_keys"] != len(bookings):
        raise KeyRaceError


async def _fetch(
    connection: Connection, statement: DriverStatement, values: Mapping[str, Any]
) -> list[asyncpg.Record]:
    return await connection.fetch(statement.sql, *statement.arguments(values))


def _transaction_row(nth: int, booking: Booking) -> Mapping[str, Any]:
    request, transaction = booking.request, booking.posted.transaction
    touched = touched_accounts(booking.posted.entries)
    return {
        "nth": nth,
        "id": transaction.id,
        "type": transaction.type,
        "caller": transaction.caller,
        "description": transaction.description,
        "external_reference": transaction.external_reference,
        "metadata": transaction.metadata,
        "reverses_id": transaction.reverses_id,
        "effective_at": request.effective_at,
        "key": request.key,
        "operation": request.fingerprint.operation,
        "fingerprint": request.fingerprint.sha256.hex(),
        "fields": request.fingerprint.fields,
        "touched_ids": list(touched),
        "touched_sequences": list(touched.values()),
    }


def _encode(rows: Sequence[Mapping[str, Any]]) -> str:
    # The driver has a UUID class of its own, which orjson does not know.
    return orjson.dumps(rows, default=str).decode()

"""How rows of the database become the nouns of the ledger."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

import orjson
from sqlalchemy import Row

from app.ledger.idempotency import Fingerprint, KnownKey
from app.ledger.model import (
    Account,
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
    Hold,
    HoldPurpose,
    HoldStatus,
    Json,
    Leg,
    Transaction,
)

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns its statement knows."""


class ReadableRow(Protocol):
    """A row of whichever client library, read by the number or the name of its columns."""

    def __getitem__(self, column: Any, /) -> Any:
        """Return the value of a column."""


ACCOUNT_COLUMNS: Final = 13
"""How many columns an account takes, always the first of a row and in the order of its fields."""

# A dictionary is several times faster than calling the enumeration, and each posting reads two accounts.
_KINDS = {member.value: member for member in AccountKind}
_PURPOSES = {member.value: member for member in AccountPurpose}
_STATUSES = {member.value: member for member in AccountStatus}
_TRACKINGS = {member.value: member for member in BalanceTracking}


def account_of(row: ReadableRow) -> Account:
    """Read an account from the first ACCOUNT_COLUMNS columns of a row."""
    return Account(
        id=row[0],
        parent_id=row[1],
        purpose=_PURPOSES[row[2]],
        code=row[3],
        owner=row[4],
        kind=_KINDS[row[5]],
        currency=row[6],
        status=_STATUSES[row[7]],
        allow_negative=row[8],
        tracking=_TRACKINGS[row[9]],
        metadata=row[10],
        created_at=row[11],
        stripes=row[12],
    )


def known_key_of(row: ReadableRow) -> KnownKey:
    """Read what a key stands for from a row with the columns of idempotency_key."""
    return KnownKey(
        Fingerprint(row["operation"], row["fingerprint"], row["fields"]),
        transaction_id=row["transaction_id"],
        account_id=row["account_id"],
    )


def hold_of(row: ReadableRow) -> Hold:
    """Read a hold from a row with the columns of hold."""
    return Hold(
        id=row["id"],
        account_id=row["account_id"],
        purpose=HoldPurpose(row["purpose"]),
        currency=row["currency"],
        amount=row["amount"],
        captured=row["captured"],
        status=HoldStatus(row["status"]),
        expires_at=row["expires_at"],
        description=row["description"],
        metadata=row["metadata"],
        external_reference=row["external_reference"],
        failure_reason=row["failure_reason"],
        created_at=row["created_at"],
        closed_at=row["closed_at"],
    )


def transactions_of(rows: Iterable[ReadableRow]) -> dict[UUID, Transaction]:
    """Read transactions from rows that bear a leg each, those of one transaction next to each other."""
    return {
        transaction_id: _transaction_of(list(legs))
        for transaction_id, legs in groupby(rows, key=lambda row: row["id"])
    }


def encode_json(value: Json | None) -> str | None:
    """Encode a value for a parameter that the statement casts to jsonb."""
    return None if value is None else orjson.dumps(value).decode()


def _transaction_of(rows: list[ReadableRow]) -> Transaction:
    first = rows[0]
    return Transaction(
        id=first["id"],
        type=first["type"],
        caller=first["caller"],
        description=first["description"],
        external_reference=first["external_reference"],
        metadata=first["metadata"],
        effective_at=first["effective_at"],
        posted_at=first["posted_at"],
        reverses_id=first["reverses_id"],
        hold_id=first["hold_id"],
        legs=tuple(
            Leg(
                account_id=row["account_id"],
                account_code=row["account_code"],
                account_owner=row["account_owner"],
                purpose=_PURPOSES[row["purpose"]],
                currency=row["currency"],
                amount=row["amount"],
            )
            for row in rows
        ),
    )

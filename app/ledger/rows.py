"""How rows of the database become the nouns of the ledger."""

from typing import Any, Final, Protocol, TypeAlias

import orjson
from sqlalchemy import Row

from app.ledger.idempotency import Fingerprint, KnownKey
from app.ledger.model import (
    Account,
    AccountKind,
    AccountPurpose,
    AccountStatus,
    BalanceTracking,
    Json,
)

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns its statement knows."""


class ReadableRow(Protocol):
    """A row of whichever client library, read by the number or the name of its columns."""

    def __getitem__(self, column: Any, /) -> Any:
        """Return the value of a column."""


ACCOUNT_COLUMNS: Final = 12
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
    )


def known_key_of(row: ReadableRow) -> KnownKey:
    """Read what a key stands for from a row with the columns of idempotency_key."""
    return KnownKey(
        Fingerprint(row["operation"], row["fingerprint"], row["fields"]),
        transaction_id=row["transaction_id"],
        account_id=row["account_id"],
    )


def encode_json(value: Json | None) -> str | None:
    """Encode a value for a parameter that the statement casts to jsonb."""
    return None if value is None else orjson.dumps(value).decode()

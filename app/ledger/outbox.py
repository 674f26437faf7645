"""What the outbox says of a transaction: which accounts it touched, and which sequence each has reached.

The journal is immutable, so an event carries no copy of it: whoever delivers an event reads the rest by its id.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from app.ledger.model import Entry


def touched_accounts(entries: Iterable[Entry]) -> Mapping[UUID, int]:
    """Return the sequence that each touched account has reached, by account id.

    A child is told of as its parent, which its readers listen to; the parent's sequence is 0 where it has no entry of
    its own in the transaction, as when its held money is captured.
    """
    touched: dict[UUID, int] = {}
    for entry in entries:
        account = entry.account
        if account.parent_id is None:
            touched[account.id] = max(entry.sequence, touched.get(account.id, 0))
        else:
            touched.setdefault(account.parent_id, 0)
    return touched

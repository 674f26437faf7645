"""What the outbox says of a transaction: which accounts it touched, and which sequence each has reached.

The journal is immutable, so an event carries no copy of it: whoever delivers an event reads the rest by its id.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from app.ledger.posting.changes import Line


def touched_accounts(lines: Iterable[Line]) -> Mapping[UUID, int]:
    """Return the sequence that each touched account has reached, by account id.

    A child is told of as its parent, which its readers listen to. The sequence is 0 where the account has no line of its
    own in the transaction, as when its held money is captured, and where it is hot: stamps are not in order of delivery.
    """
    touched: dict[UUID, int] = {}
    for line in lines:
        touched[line.main.id] = max(line.reached, touched.get(line.main.id, 0))
    return touched

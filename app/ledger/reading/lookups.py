"""What a posting must know before it can be asked for: the hold that it ends, the transaction that it takes back.

Such a look comes before every capture, void, settlement, reversal and refund, so it goes through the driver itself, like
the posting, and those that come at the same time share a statement.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from app.driver import DriverConnections, load_driver_statements
from app.ledger.model import HoldPurpose, Transaction
from app.ledger.movements.holds import HeldMoney
from app.ledger.reading.gathering import Gatherer
from app.ledger.reading.transactions import TRANSACTIONS_BY_ID
from app.ledger.rows import transactions_of

_SQL: Final = load_driver_statements(Path(__file__).parent / "sql" / "lookups.sql")


class Lookups:
    """Reads single facts for many callers at a time; strongly consistent.

    Its methods raise DatabaseUnavailableError.
    """

    def __init__(self, connections: DriverConnections) -> None:
        """Use at most two connections at a time."""
        self._connections = connections
        self._held_money: Gatherer[UUID, HeldMoney] = Gatherer(self._read_held_money)
        self._transactions: Gatherer[UUID, Transaction] = Gatherer(self._read_transactions)

    async def held_money(self, hold_id: UUID) -> HeldMoney | None:
        """Read what never changes of a hold or withdrawal; None where the id names neither."""
        return await self._held_money.get(hold_id)

    async def transaction(self, transaction_id: UUID) -> Transaction | None:
        """Read a transaction with its legs; None where the id names none."""
        return await self._transactions.get(transaction_id)

    async def _read_held_money(self, ids: Sequence[UUID]) -> Mapping[UUID, HeldMoney]:
        statement = _SQL["held_money"]
        async with self._connections.connection() as connection:
            rows = await connection.fetch(statement.sql, *statement.arguments({"ids": ids}))
        return {
            row["id"]: HeldMoney(
                hold_id=row["id"],
                account_id=row["account_id"],
                purpose=HoldPurpose(row["purpose"]),
                currency=row["currency"],
                amount=row["amount"],
                stripes=tuple(zip(row["stripe_ids"], row["amounts"], strict=True)),
            )
            for row in rows
        }

    async def _read_transactions(self, ids: Sequence[UUID]) -> Mapping[UUID, Transaction]:
        statement = TRANSACTIONS_BY_ID
        async with self._connections.connection() as connection:
            rows = await connection.fetch(statement.sql, *statement.arguments({"ids": ids}))
        return transactions_of(rows)

"""The reading statements, one function each; all take a connection first and see the newest committed state.

Histories are read through `histories`, which knows what of them may be shown already.
"""

from app.ledger.reading.accounts import (
    account_by_code,
    accounts_by_id,
    accounts_page,
    count_accounts,
)
from app.ledger.reading.balances import balances, balances_at
from app.ledger.reading.entries import entries_of_transactions, last_transactions
from app.ledger.reading.holds import (
    accounts_of_holds,
    holds_by_id,
    holds_page,
    transactions_of_holds,
)
from app.ledger.reading.transactions import (
    known_key,
    reversals,
    transactions_by_id,
    transactions_page,
)

__all__ = [
    "account_by_code",
    "accounts_by_id",
    "accounts_of_holds",
    "accounts_page",
    "balances",
    "balances_at",
    "count_accounts",
    "entries_of_transactions",
    "holds_by_id",
    "holds_page",
    "known_key",
    "last_transactions",
    "reversals",
    "transactions_by_id",
    "transactions_of_holds",
    "transactions_page",
]

"""The GraphQL documents of the story."""

from typing import Final

_MONEY: Final = "{ minorUnits decimal currency }"

_REFUSALS: Final = """
userErrors {
  code message retryable
  ... on InsufficientFunds { available { decimal } required { decimal } shortfall { decimal } }
  ... on IdempotencyConflict { differingFields }
}
"""

WHO_AM_I: Final = "{ viewer { subject } }"

OPEN_ACCOUNT: Final = f"""
mutation OpenAccount($input: OpenAccountInput!) {{
  openAccount(input: $input) {{ account {{ id code }} replayed {_REFUSALS} }}
}}
"""

DEPOSIT: Final = f"""
mutation Deposit($input: DepositInput!) {{
  deposit(input: $input) {{ transaction {{ id }} replayed {_REFUSALS} }}
}}
"""

TRANSFER: Final = f"""
mutation Transfer($input: TransferInput!) {{
  transfer(input: $input) {{
    transaction {{ id }}
    entries {{ sequence balanceAfter {_MONEY} }}
    replayed
    {_REFUSALS}
  }}
}}
"""

HISTORY: Final = f"""
query History($id: ID!, $after: String) {{
  account(id: $id) {{
    balance {{ available {_MONEY} sequence }}
    entries(first: 100, after: $after, order: OLDEST_FIRST) {{
      nodes {{
        sequence
        amount {_MONEY}
        balanceAfter {_MONEY}
        transaction {{ id type }}
      }}
      pageInfo {{ hasNextPage endCursor }}
    }}
  }}
}}
"""

ENTRY_POSTED: Final = f"""
subscription EntryPosted($id: ID!) {{
  entryPosted(accountId: $id, after: "") {{
    entry {{
      sequence
      amount {_MONEY}
      balanceAfter {_MONEY}
      transaction {{ id type description }}
    }}
  }}
}}
"""

BALANCE_CHANGED: Final = f"""
subscription BalanceChanged($ids: [ID!]!) {{
  balanceChanged(accountIds: $ids) {{
    account {{ id }}
    balance {{ available {_MONEY} sequence }}
  }}
}}
"""

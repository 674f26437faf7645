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

PLACE_HOLD: Final = f"""
mutation PlaceHold($input: PlaceHoldInput!) {{
  placeHold(input: $input) {{ hold {{ id status }} transaction {{ id }} replayed {_REFUSALS} }}
}}
"""

CAPTURE_HOLD: Final = f"""
mutation CaptureHold($input: CaptureHoldInput!) {{
  captureHold(input: $input) {{
    hold {{ id status captured {_MONEY} }}
    transaction {{ id }}
    replayed
    {_REFUSALS}
  }}
}}
"""

POST_TRANSACTION: Final = f"""
mutation PostTransaction($input: PostTransactionInput!) {{
  postTransaction(input: $input) {{ transaction {{ id }} replayed {_REFUSALS} }}
}}
"""

REFUND: Final = f"""
mutation RefundTransaction($input: RefundTransactionInput!) {{
  refundTransaction(input: $input) {{ transaction {{ id }} replayed {_REFUSALS} }}
}}
"""

BALANCE: Final = f"""
query Balance($id: ID!) {{ account(id: $id) {{ balance {{ available {_MONEY} held {_MONEY} }} }} }}
"""

HISTORY: Final = f"""
query History($id: ID!, $after: String) {{
  account(id: $id) {{
    balance {{ available {_MONEY} held {_MONEY} sequence }}
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

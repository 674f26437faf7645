"""What must be true of the books after every case, whatever happened before."""

from collections.abc import Mapping
from typing import Final

from tests.support.postgres import connect

_FINDINGS: Final[Mapping[str, str]] = {
    "a transaction does not sum to zero": """
        select transaction_id, currency from entry group by 1, 2 having sum(amount) <> 0
    """,
    "a currency does not sum to zero": """
        select currency from entry group by 1 having sum(amount) <> 0
    """,
    "a balance is not the sum of its entries, or a sequence not their number": """
        select a.id from account as a left join entry as e on e.account_id = a.id
        group by a.id having a.balance <> coalesce(sum(e.amount), 0) or a.sequence <> count(e.amount)
    """,
    "a chain of entries is broken": """
        select account_id, sequence from (
          select
            account_id, sequence, balance_after, amount, posted_at,
            coalesce(lag(balance_after) over history, 0) as balance_before,
            coalesce(lag(sequence) over history, 0) as sequence_before,
            lag(posted_at) over history as posted_before
          from entry window history as (partition by account_id order by sequence)
        ) as chained
        where balance_after <> balance_before + cast(amount as numeric)
          or sequence <> sequence_before + 1 or posted_at < posted_before
    """,
    "an account does not stand at its last entry": """
        select a.id from account as a join entry as e on e.account_id = a.id and e.sequence = a.sequence
        where a.balance <> e.balance_after or a.posted_at <> e.posted_at
    """,
    "an account is below its floor": """
        select id from account
        where not allow_negative
          and case when kind in ('ASSET', 'EXPENSE') then -cast(balance as numeric) else balance end < 0
    """,
    "a transaction has not exactly one event": """
        select j.id from journal as j
        left join (select transaction_id from outbox union all select transaction_id from event) as told
          on told.transaction_id = j.id
        group by j.id having count(told.transaction_id) <> 1
    """,
    "the events of an account are out of order": """
        select account_id, sequence from (
          select
            reached.account_id, reached.sequence,
            lag(reached.sequence) over (partition by reached.account_id order by told.queue, told.place) as before
          from (
            select 1 as queue, position as place, account_ids, sequences from event
            union all
            select 2, id, account_ids, sequences from outbox
          ) as told,
          unnest(told.account_ids, told.sequences) as reached (account_id, sequence)
        ) as numbered
        where before >= sequence
    """,
    "an event tells of no transaction": """
        select transaction_id from (select transaction_id from outbox union all select transaction_id from event) as told
        where transaction_id not in (select id from journal)
    """,
    "a transaction has not exactly one key of its caller": """
        select j.id from journal as j
        left join idempotency_key as k on k.transaction_id = j.id and k.caller = j.caller
        group by j.id having count(k.key) <> 1
    """,
    "a key stands for no transaction": """
        select caller, key from idempotency_key
        where transaction_id is not null and transaction_id not in (select id from journal)
    """,
    "a session of the ledger sits idle in a transaction": """
        select pid from pg_stat_activity
        where datname = current_database() and application_name like 'saldo%' and state like 'idle in transaction%'
    """,
}


async def assert_books_are_right(url: str) -> None:
    """Compare all that must agree, at one instant."""
    async with connect(url) as connection, connection.transaction(isolation="repeatable_read"):
        findings = {
            name: [tuple(row) for row in rows[:5]]
            for name, query in _FINDINGS.items()
            if (rows := await connection.fetch(query))
        }
    assert findings == {}, findings

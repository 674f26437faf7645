"""Queries that each name a promise of the books and return whatever breaks it: no row where all is well.

An account is told by its root: a held child and the stripes of a hot account stand for their parent. Amounts are stored
signed, credit positive.
"""

from collections.abc import Mapping
from typing import Final

BOOKS: Final[Mapping[str, str]] = {
    "a transaction does not sum to zero": """
        select transaction_id, currency from entry group by 1, 2 having sum(amount) <> 0
    """,
    "a currency does not sum to zero": """
        select currency from entry group by 1 having sum(amount) <> 0
    """,
    "a balance is not the sum of its entries, or a sequence not their number": """
        select a.id from account as a left join entry as e on e.account_id = a.id
        where a.tracking = 'TRACKED'
        group by a.id
        having a.balance <> coalesce(sum(e.amount), 0)
          or a.sequence <> case when a.purpose = 'STRIPE' then coalesce(max(e.sequence), 0) else count(e.amount) end
    """,
    "a chain of entries is broken": """
        select account_id, sequence from (
          select
            e.account_id, e.sequence, e.balance_after, e.amount, e.posted_at, a.purpose,
            coalesce(lag(e.balance_after) over history, 0) as balance_before,
            coalesce(lag(e.sequence) over history, 0) as sequence_before,
            lag(e.posted_at) over history as posted_before
          from entry as e join account as a on a.id = e.account_id
          where a.tracking = 'TRACKED'
          window history as (partition by e.account_id order by e.sequence)
        ) as chained
        where balance_after is distinct from balance_before + cast(amount as numeric)
          or posted_at < posted_before
          or case when purpose = 'STRIPE' then sequence <= sequence_before else sequence <> sequence_before + 1 end
    """,
    "an account does not stand at its last entry": """
        select a.id from account as a join entry as e on e.account_id = a.id and e.sequence = a.sequence
        where a.balance <> e.balance_after or a.posted_at <> e.posted_at
    """,
    "an account is below its floor": """
        select id from account
        where (not allow_negative or purpose = 'HELD')
          and case when kind in ('ASSET', 'EXPENSE') then -cast(balance as numeric) else balance end < 0
    """,
    "a transaction has not exactly one event": """
        select j.id from journal as j
        left join (select transaction_id from outbox union all select transaction_id from event) as told
          on told.transaction_id = j.id
        group by j.id having count(told.transaction_id) <> 1
    """,
    # The entries of hot accounts are not numbered in the order of their commits; where only held money moved, that of an
    # account's own entries is told as 0.
    "the events of an account are out of order": """
        select account_id, sequence from (
          select
            reached.account_id, reached.sequence,
            lag(reached.sequence) over (partition by reached.account_id order by told.queue, told.place) as before
          from (
            select 1 as queue, position as place, account_ids, sequences from event
            union all
            select 2, id, account_ids, sequences from outbox
          ) as told
          cross join unnest(told.account_ids, told.sequences) as reached (account_id, sequence)
          join account as a on a.id = reached.account_id and a.tracking = 'TRACKED'
          where reached.sequence > 0
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

HOT_ACCOUNTS: Final[Mapping[str, str]] = {
    "a hot account keeps a balance of its own": """
        select id from account where tracking <> 'TRACKED' and (balance <> 0 or sequence <> 0 or posted_at is not null)
    """,
    "a striped account has entries of its own": """
        select a.id from account as a where a.tracking = 'STRIPED' and exists (select from entry where account_id = a.id)
    """,
    "an entry of a derived account bears a balance": """
        select e.account_id, e.sequence from entry as e
        join account as a on a.id = e.account_id and a.tracking = 'DERIVED' where e.balance_after is not null
    """,
    "two entries of one striped account bear the same stamp": """
        select a.parent_id, e.sequence from entry as e join account as a on a.id = e.account_id and a.purpose = 'STRIPE'
        group by 1, 2 having count(*) > 1
    """,
    "a stamp does not name its stripe": """
        select e.account_id, e.sequence from entry as e
        join account as a on a.id = e.account_id and a.purpose = 'STRIPE' where (e.sequence & 255) <> a.stripe
    """,
    "a stamp is above all that were given out": """
        select e.account_id, e.sequence from entry as e
        join account as a on a.id = e.account_id and (a.purpose = 'STRIPE' or a.tracking = 'DERIVED')
        where e.sequence >> 24 > (select last_value from hot_stamp)
    """,
    "a striped account has not the stripes that it should have": """
        select p.id from account as p left join account as c on c.parent_id = p.id and c.purpose = 'STRIPE'
        where p.tracking = 'STRIPED'
        group by p.id having count(c.id) <> p.stripes or min(c.stripe) <> 0 or max(c.stripe) <> p.stripes - 1
    """,
    "a stripe is not as its parent": """
        select c.id from account as c join account as p on p.id = c.parent_id
        where c.purpose = 'STRIPE' and (
          (c.kind, c.currency, c.allow_negative, c.status) <> (p.kind, p.currency, p.allow_negative, p.status)
          or p.tracking <> 'STRIPED' or c.tracking <> 'TRACKED' or c.code is not null or c.owner is not null
        )
    """,
    "a sweep reaches beyond its account": """
        select j.id from journal as j join entry as e on e.transaction_id = j.id join account as a on a.id = e.account_id
        where j.type = 'sweep'
        group by j.id having count(distinct coalesce(a.parent_id, a.id)) <> 1 or bool_or(a.purpose <> 'STRIPE')
    """,
    "a snapshot is not the sum of the entries up to it": """
        select s.account_id, s.sequence from snapshot as s
        where s.balance <> (
          select coalesce(sum(e.amount), 0) from entry as e where e.account_id = s.account_id and e.sequence <= s.sequence
        )
    """,
}

HOLDS: Final[Mapping[str, str]] = {
    "a held child has not what the open holds of its parent set aside": """
        select a.id from account as a
        left join account as c on c.parent_id = a.id and c.purpose = 'HELD'
        left join (select account_id, sum(amount) as amount from hold where status = 'OPEN' group by 1) as h
          on h.account_id = a.id
        where a.purpose = 'MAIN' and coalesce(c.balance, 0) <> coalesce(h.amount, 0)
    """,
    "a held child is not as its parent": """
        select c.id from account as c join account as p on p.id = c.parent_id
        where c.purpose = 'HELD' and (
          (c.kind, c.currency) <> (p.kind, p.currency) or p.purpose <> 'MAIN' or p.tracking = 'DERIVED'
          or p.kind in ('ASSET', 'EXPENSE') or c.tracking <> 'TRACKED' or c.code is not null
        )
    """,
    "money was set aside or given back without a hold of its account": """
        select e.transaction_id from entry as e
        join account as c on c.id = e.account_id and c.purpose = 'HELD'
        join journal as j on j.id = e.transaction_id
        left join hold as h on h.id = j.hold_id
        where h.account_id is distinct from c.parent_id
    """,
    "a transaction belongs to no hold, or not to one of its type": """
        select j.id from journal as j left join hold as h on h.id = j.hold_id
        where (h.id is null) <> (j.type not in ('hold', 'capture', 'release', 'withdrawal'))
          or (j.type = 'capture' and h.purpose <> 'HOLD') or (j.type = 'withdrawal' and h.purpose <> 'WITHDRAWAL')
    """,
    # Nobody asks for an expiry, so its transaction's caller is the ledger itself.
    "a hold's status is not what its transactions say": """
        select h.id, h.status from hold as h
        left join journal as j on j.hold_id = h.id
        group by h.id
        having array_agg(j.type || case when j.caller = '' then ' by itself' else '' end order by j.type) is distinct from
          case
            when h.status = 'OPEN' then array['hold']
            when h.status = 'CAPTURED' and h.purpose = 'HOLD' then array['capture', 'hold']
            when h.status = 'CAPTURED' then array['hold', 'withdrawal']
            when h.status = 'VOIDED' then array['hold', 'release']
            when h.purpose = 'HOLD' then array['hold', 'release by itself']
          end
    """,
    "a hold set aside, or gave away, another amount than it says": """
        select h.id, h.amount, h.captured from hold as h
        join journal as j on j.hold_id = h.id
        join entry as e on e.transaction_id = j.id
        join account as a on a.id = e.account_id
        group by h.id
        having sum(e.amount) filter (where j.type = 'hold' and a.purpose = 'HELD') is distinct from h.amount
          or sum(e.amount) filter (where a.purpose = 'HELD') <> case when h.status = 'OPEN' then h.amount else 0 end
          or sum(e.amount) filter (where coalesce(a.parent_id, a.id) = h.account_id) <> -h.captured
          or coalesce(sum(e.amount) filter (where coalesce(a.parent_id, a.id) <> h.account_id), 0) <> h.captured
    """,
    "a stripe got back other money than it gave to a hold that came to nothing": """
        select h.id, e.account_id from hold as h
        join journal as j on j.hold_id = h.id
        join entry as e on e.transaction_id = j.id
        join account as a on a.id = e.account_id and a.purpose = 'STRIPE'
        where h.status in ('VOIDED', 'EXPIRED')
        group by 1, 2 having sum(e.amount) <> 0
    """,
    "a hold expired before its time or was captured after it": """
        select id from hold
        where (status = 'EXPIRED' and (expires_at is null or closed_at < expires_at))
          or (status = 'CAPTURED' and closed_at >= expires_at)
          or closed_at < created_at
    """,
}

REVERSALS: Final[Mapping[str, str]] = {
    "reversals are not numbered 1, 2, 3, ... or a reversal is not alone": """
        select reverses_id from journal where reverses_id is not null group by 1
        having min(reversal_number) <> 1 or max(reversal_number) <> count(*)
          or (count(*) > 1 and bool_or(type = 'reversal'))
    """,
    "a reversal or refund names no original, or something else does": """
        select id from journal where (type in ('reversal', 'refund')) <> (reverses_id is not null)
    """,
    "what can't be taken back was": """
        select o.id from journal as j join journal as o on o.id = j.reverses_id
        where o.type in ('hold', 'release', 'withdrawal', 'sweep', 'reversal', 'refund')
    """,
    # `net` is what a transaction did to each account; a capture counts by what it gave away.
    "more was taken back than there was, or from somebody else, or less by a reversal": """
        with net as (
          select e.transaction_id, coalesce(a.parent_id, a.id) as root, sum(e.amount) as amount
          from entry as e join account as a on a.id = e.account_id
          where e.transaction_id in (
            select id from journal where reverses_id is not null
            union all
            select reverses_id from journal where reverses_id is not null
          )
          group by 1, 2 having sum(e.amount) <> 0
        ),
        taken_back as (
          select j.reverses_id, n.root, sum(n.amount) as amount
          from journal as j join net as n on n.transaction_id = j.id where j.reverses_id is not null group by 1, 2
        ),
        original as (
          select n.transaction_id, n.root, n.amount, bool_or(j.type = 'reversal') as whole
          from net as n join journal as j on j.reverses_id = n.transaction_id group by 1, 2, 3
        )
        select coalesce(t.reverses_id, o.transaction_id), coalesce(t.root, o.root)
        from original as o
        full join taken_back as t on t.reverses_id = o.transaction_id and t.root = o.root
        where o.amount is null
          or t.amount is null
          or sign(t.amount) = sign(o.amount)
          or abs(t.amount) > abs(o.amount)
          or (o.whole and t.amount <> -o.amount)
    """,
}

STATUSES: Final[Mapping[str, str]] = {
    "there is money or an open hold in a closed account": """
        select a.id from account as a
        where a.status = 'CLOSED' and a.purpose = 'MAIN' and (
          0 <> (
            select coalesce(sum(e.amount), 0) from entry as e
            where e.account_id in (select c.id from account as c where c.id = a.id or c.parent_id = a.id)
          )
          or exists (select from hold as h where h.account_id = a.id and h.status = 'OPEN')
        )
    """,
    "money moved through an account after it was closed": """
        select a.id, e.transaction_id from account_status_change as s
        join account as a on a.id = s.account_id or a.parent_id = s.account_id
        join entry as e on e.account_id = a.id
        where s.status = 'CLOSED' and e.posted_at > s.changed_at
    """,
    "an account's status is not that of its last change, or changed after it was closed": """
        select a.id from account as a
        join (
          select
            account_id, status, row_number() over (partition by account_id order by id desc) as place
          from account_status_change
        ) as s on s.account_id = a.id
        where (s.place = 1 and s.status <> a.status) or (s.place > 1 and s.status = 'CLOSED')
    """,
}

ALL: Final[Mapping[str, str]] = {**BOOKS, **HOT_ACCOUNTS, **HOLDS, **REVERSALS, **STATUSES}

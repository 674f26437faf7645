-- name: accounts_by_id
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at
from account
where id = any(cast(:ids as uuid[])) and purpose = 'MAIN';

-- name: account_by_code
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at
from account
where code = :code;

-- name: accounts_of_owner
-- Ids are in the order of their creation, so that a page stays where it is when accounts are opened later.
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at
from account
where owner = :owner and purpose = 'MAIN' and id > :above and id < :below
  and (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
  and (cast(:currency as text) is null or currency = :currency)
  and (cast(:kind as text) is null or kind = :kind)
  and (cast(:status as text) is null or status = :status)
order by
  case when :backward then null else id end,
  case when :backward then id end desc
limit :limit;

-- name: count_accounts_of_owner
-- Reads no more rows than the bound, whatever the filter lets through.
select
  count(*) as rows_read,
  count(*) filter (
    where (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
    and (cast(:currency as text) is null or currency = :currency)
    and (cast(:kind as text) is null or kind = :kind)
    and (cast(:status as text) is null or status = :status)
  ) as matching
from (
  select code, currency, kind, status from account where owner = :owner and purpose = 'MAIN' limit :bound
) as counted;

-- name: balances
-- One statement and so one snapshot: what is held and what is available belong to the same instant.
select a.id, a.balance, a.sequence, coalesce(held.balance, 0) as held
from account as a
left join account as held on held.parent_id = a.id and held.purpose = 'HELD'
where a.id = any(cast(:ids as uuid[]));

-- name: balances_at
-- Along an account's sequence the posting time never decreases, so its last entry at or before an instant is found by
-- halving: one probe of the primary key for each doubling of the history, and no index of its own.
with recursive search (id, account_id, low, high) as (
  select coalesce(a.parent_id, a.id), a.id, cast(0 as bigint), a.sequence
  from account as a
  where a.id = any(cast(:ids as uuid[]))
    or (a.parent_id = any(cast(:ids as uuid[])) and a.purpose = 'HELD')
  union all
  select
    s.id, s.account_id,
    case when middle.posted_at <= :at then middle.sequence else s.low end,
    case when middle.posted_at <= :at then s.high else middle.sequence - 1 end
  from search as s
  join entry as middle on middle.account_id = s.account_id and middle.sequence = (s.low + s.high + 1) / 2
  where s.low < s.high
)
select s.id, cast(coalesce(sum(e.balance_after), 0) as bigint) as posted
from search as s
left join entry as e on e.account_id = s.account_id and e.sequence = s.low
where s.low = s.high
group by s.id;

-- name: entries_ascending
select e.sequence, e.transaction_id, e.amount, e.balance_after, e.posted_at
from entry as e
where e.account_id = :account_id and e.sequence > :above and e.sequence < :below
  and (cast(:types as text[]) is null or (select j.type from journal as j where j.id = e.transaction_id) = any(:types))
  and (cast(:sign as int) is null or sign(e.amount) = :sign)
  and (cast(:posted_from as timestamptz) is null or e.posted_at >= :posted_from)
  and (cast(:posted_before as timestamptz) is null or e.posted_at < :posted_before)
  and (cast(:smallest as bigint) is null or abs(cast(e.amount as numeric)) >= :smallest)
  and (cast(:largest as bigint) is null or abs(cast(e.amount as numeric)) <= :largest)
order by e.sequence
limit :limit;

-- name: entries_descending
select e.sequence, e.transaction_id, e.amount, e.balance_after, e.posted_at
from entry as e
where e.account_id = :account_id and e.sequence > :above and e.sequence < :below
  and (cast(:types as text[]) is null or (select j.type from journal as j where j.id = e.transaction_id) = any(:types))
  and (cast(:sign as int) is null or sign(e.amount) = :sign)
  and (cast(:posted_from as timestamptz) is null or e.posted_at >= :posted_from)
  and (cast(:posted_before as timestamptz) is null or e.posted_at < :posted_before)
  and (cast(:smallest as bigint) is null or abs(cast(e.amount as numeric)) >= :smallest)
  and (cast(:largest as bigint) is null or abs(cast(e.amount as numeric)) <= :largest)
order by e.sequence desc
limit :limit;

-- name: count_entries
select count(*) as matching
from entry as e
where e.account_id = :account_id
  and (cast(:types as text[]) is null or (select j.type from journal as j where j.id = e.transaction_id) = any(:types))
  and (cast(:sign as int) is null or sign(e.amount) = :sign)
  and (cast(:posted_from as timestamptz) is null or e.posted_at >= :posted_from)
  and (cast(:posted_before as timestamptz) is null or e.posted_at < :posted_before)
  and (cast(:smallest as bigint) is null or abs(cast(e.amount as numeric)) >= :smallest)
  and (cast(:largest as bigint) is null or abs(cast(e.amount as numeric)) <= :largest);

-- name: entries_of_transactions
-- All lines of these transactions, each with its account, for those who must answer a posting once more.
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at,
  e.transaction_id, e.sequence, e.amount, e.balance_after, e.posted_at
from entry as e
join account as a on a.id = e.account_id
where e.transaction_id = any(cast(:ids as uuid[]))
order by e.transaction_id, e.leg;

-- name: transactions_by_id
select
  j.id, j.type, j.caller, j.description, j.external_reference, j.metadata, j.effective_at, j.posted_at, j.reverses_id,
  coalesce(parent.id, a.id) as account_id,
  coalesce(parent.code, a.code) as account_code,
  coalesce(parent.owner, a.owner) as account_owner,
  a.purpose, e.currency, e.amount
from journal as j
join entry as e on e.transaction_id = j.id
join account as a on a.id = e.account_id
left join account as parent on parent.id = a.parent_id
where j.id = any(cast(:ids as uuid[]))
order by j.id, e.leg;

-- name: transaction_ids_of_entries
select e.account_id, e.transaction_id
from unnest(cast(:account_ids as uuid[]), cast(:sequences as bigint[])) as asked (account_id, sequence)
join entry as e on e.account_id = asked.account_id and e.sequence = asked.sequence;

-- name: reversals
select reverses_id, id
from journal
where reverses_id = any(cast(:ids as uuid[]))
order by posted_at, id;

-- name: known_key
select caller, key, operation, fingerprint, fields, transaction_id, account_id
from idempotency_key
where caller = :caller and key = :key;

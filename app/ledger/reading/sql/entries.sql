-- name: settled_stamp
select found.highest, found.settled from settled_stamp() as found;

-- name: entries_ascending
-- The rows that bear the account's entries are its own, or its stripes. Each is probed for a page of its own, and the
-- page is made of these.
select e.*
from unnest(cast(:row_ids as uuid[])) as bearing (id)
join lateral (
  select e.sequence, e.transaction_id, e.amount, e.balance_after, e.posted_at
  from entry as e
  where e.account_id = bearing.id and e.sequence > :above and e.sequence < :below
    and (
      cast(:types as text[]) is null
      or (select j.type from journal as j where j.id = e.transaction_id) = any(:types)
    )
    and (cast(:sign as int) is null or sign(e.amount) = :sign)
    and (cast(:posted_from as timestamptz) is null or e.posted_at >= :posted_from)
    and (cast(:posted_before as timestamptz) is null or e.posted_at < :posted_before)
    and (cast(:smallest as bigint) is null or abs(cast(e.amount as numeric)) >= :smallest)
    and (cast(:largest as bigint) is null or abs(cast(e.amount as numeric)) <= :largest)
  order by e.sequence
  limit :limit
) as e on true
order by e.sequence
limit :limit;

-- name: entries_descending
select e.*
from unnest(cast(:row_ids as uuid[])) as bearing (id)
join lateral (
  select e.sequence, e.transaction_id, e.amount, e.balance_after, e.posted_at
  from entry as e
  where e.account_id = bearing.id and e.sequence > :above and e.sequence < :below
    and (
      cast(:types as text[]) is null
      or (select j.type from journal as j where j.id = e.transaction_id) = any(:types)
    )
    and (cast(:sign as int) is null or sign(e.amount) = :sign)
    and (cast(:posted_from as timestamptz) is null or e.posted_at >= :posted_from)
    and (cast(:posted_before as timestamptz) is null or e.posted_at < :posted_before)
    and (cast(:smallest as bigint) is null or abs(cast(e.amount as numeric)) >= :smallest)
    and (cast(:largest as bigint) is null or abs(cast(e.amount as numeric)) <= :largest)
  order by e.sequence desc
  limit :limit
) as e on true
order by e.sequence desc
limit :limit;

-- name: count_entries
-- Reads no more entries than the bound, whatever the filter lets through.
select
  count(*) as rows_read,
  count(*) filter (
    where (
      cast(:types as text[]) is null
      or (select j.type from journal as j where j.id = counted.transaction_id) = any(:types)
    )
    and (cast(:sign as int) is null or sign(counted.amount) = :sign)
    and (cast(:posted_from as timestamptz) is null or counted.posted_at >= :posted_from)
    and (cast(:posted_before as timestamptz) is null or counted.posted_at < :posted_before)
    and (cast(:smallest as bigint) is null or abs(cast(counted.amount as numeric)) >= :smallest)
    and (cast(:largest as bigint) is null or abs(cast(counted.amount as numeric)) <= :largest)
  ) as matching
from (
  select e.*
  from unnest(cast(:row_ids as uuid[])) as bearing (id)
  join lateral (
    select e.transaction_id, e.amount, e.posted_at
    from entry as e
    where e.account_id = bearing.id and e.sequence < :below
    limit :bound
  ) as e on true
  limit :bound
) as counted;

-- name: striped_balances
-- What an account has after each of these stamps: what each of its stripes had after its own last entry up to there.
select asked.stamp, sum(last.balance_after) as available
from unnest(cast(:stamps as bigint[])) as asked (stamp)
cross join unnest(cast(:row_ids as uuid[])) as stripe (id)
join lateral (
  select e.balance_after
  from entry as e
  where e.account_id = stripe.id and e.sequence <= asked.stamp
  order by e.sequence desc
  limit 1
) as last on true
group by asked.stamp;

-- name: entries_of_transactions
-- All lines of these transactions, each with its account, for those who must answer a posting once more. A stripe's
-- line is its parent's, and what the parent had after it isn't in the row.
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes,
  e.transaction_id, e.sequence, e.amount, e.balance_after, e.posted_at
from entry as e
join account as bearing on bearing.id = e.account_id
join account as a on a.id = case when bearing.purpose = 'STRIPE' then bearing.parent_id else bearing.id end
where e.transaction_id = any(cast(:ids as uuid[]))
order by e.transaction_id, e.leg;

-- name: last_transactions
-- The newest line of each account, of the money that it holds, or of its stripes. Those are numbered apart from each
-- other, so their last lines are compared by the time of posting, and those of one instant by the ids of their
-- transactions, which are made in turn.
select asked.id, newest.transaction_id
from unnest(cast(:ids as uuid[])) as asked (id)
join lateral (
  select last.transaction_id
  from account as bearing
  join lateral (
    select e.transaction_id, e.posted_at
    from entry as e
    where e.account_id = bearing.id
    order by e.sequence desc
    limit 1
  ) as last on true
  where bearing.id = asked.id or bearing.parent_id = asked.id
  order by last.posted_at desc, last.transaction_id desc
  limit 1
) as newest on true;

-- name: holds_due
-- By the clock as it is now: a transaction's own may be older than what it waited for.
select id, expires_at
from hold
where status = 'OPEN' and expires_at <= clock_timestamp()
  and (expires_at, id) > (cast(:after_expires_at as timestamptz), cast(:after_id as uuid))
order by expires_at, id
limit :limit;

-- name: accounts_to_sweep
-- The period is one of the database's clock, so that all processes name the same. A sweep locks every stripe, so what
-- was swept in this period isn't asked for again only to be told so.
select a.id, 'sweep ' || a.id || ' ' || period.number as key
from account as a
cross join (
  select cast(floor(extract(epoch from clock_timestamp()) / cast(:period_seconds as numeric)) as text) as number
) as period
where not exists (
    select from idempotency_key as k where k.caller = '' and k.key = 'sweep ' || a.id || ' ' || period.number
  )
  and a.tracking = 'STRIPED' and a.status = 'ACTIVE'
  and exists (
    select from account as stripe
    where stripe.parent_id = a.id and stripe.purpose = 'STRIPE' and stripe.stripe > 0 and stripe.balance <> 0
  )
order by a.id;

-- name: derived_accounts
select id from account where tracking = 'DERIVED' order by id;

-- name: settled_stamp
select settled from settled_stamp();

-- name: take_snapshot
-- Goes on from the last snapshot, over no more than a bounded number of entries, all of which are settled: none can
-- turn up among them later. Where another process has taken the same meanwhile, that one stands.
with last as (
  select sequence, balance, posted_at from snapshot where account_id = :account_id order by sequence desc limit 1
), later as (
  select e.sequence, e.amount, e.posted_at
  from entry as e
  where e.account_id = :account_id and e.sequence < :first_unsettled
    and e.sequence > coalesce((select sequence from last), 0)
  order by e.sequence
  limit :most
)
insert into snapshot (account_id, sequence, balance, posted_at)
select
  :account_id,
  max(later.sequence),
  coalesce((select balance from last), 0) + sum(later.amount),
  greatest((select posted_at from last), max(later.posted_at))
from later
having count(*) >= :fewest
on conflict do nothing
returning 1;

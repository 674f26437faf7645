-- name: balances
-- One statement and so one snapshot: what is held and what is available belong to the same instant. The row of a hot
-- account has no balance: it is that of its stripes, or of its last snapshot and the entries after that. Of no other
-- account is any of these looked for.
select
  a.id, a.sequence, a.balance, coalesce(held.balance, 0) as held,
  case
    when a.tracking = 'STRIPED'
      then (
        select coalesce(sum(stripe.balance), 0)
        from account as stripe
        where stripe.parent_id = a.id and stripe.purpose = 'STRIPE'
      )
    when a.tracking = 'DERIVED'
      then (
        select coalesce(max(known.balance), 0) + coalesce(sum(e.amount), 0)
        from (
          select max(s.sequence) as sequence from snapshot as s where s.account_id = a.id
        ) as last
        left join snapshot as known on known.account_id = a.id and known.sequence = last.sequence
        left join entry as e on e.account_id = a.id and e.sequence > coalesce(last.sequence, 0)
      )
  end as hot_balance
from account as a
left join account as held on held.parent_id = a.id and held.purpose = 'HELD'
where a.id = any(cast(:ids as uuid[]));

-- name: balances_at
-- Along the sequence of a row that is locked for each posting, the posting time never decreases. So its last entry at
-- or before an instant is found by halving the range in which the sequence lies: a few probes of the primary key, and
-- no index of its own. In a stripe's range most numbers are nobody's, so a probe takes the last one of the lower half.
-- The entries of a derived account are in no such order. What was posted until the instant is its last snapshot of that
-- time, and all that is numbered above and was posted by then.
with recursive search (id, row_id, low, high) as (
  select
    coalesce(a.parent_id, a.id), a.id,
    case when a.posted_at <= :at then a.sequence else 0 end,
    a.sequence
  from account as a
  where a.id = any(cast(:ids as uuid[])) or a.parent_id = any(cast(:ids as uuid[]))
  union all
  select
    s.id, s.row_id,
    case when middle.posted_at > :at then s.low else s.low + (s.high - s.low + 1) / 2 end,
    case when middle.posted_at > :at then middle.sequence - 1 else s.high end
  from search as s
  left join lateral (
    select e.sequence, e.posted_at
    from entry as e
    where e.account_id = s.row_id and e.sequence > s.low and e.sequence <= s.low + (s.high - s.low + 1) / 2
    order by e.sequence desc
    limit 1
  ) as middle on true
  where s.low < s.high
), part (id, posted) as (
  select s.id, last.balance_after
  from search as s
  left join lateral (
    select e.balance_after
    from entry as e
    where e.account_id = s.row_id and e.sequence <= s.low
    order by e.sequence desc
    limit 1
  ) as last on true
  where s.low = s.high
  union all
  select
    a.id, coalesce(known.balance, 0) + coalesce(later.amount, 0)
  from account as a
  left join lateral (
    select s.sequence, s.balance
    from snapshot as s
    where s.account_id = a.id and s.posted_at <= :at
    order by s.sequence desc
    limit 1
  ) as known on true
  left join lateral (
    select sum(e.amount) as amount
    from entry as e
    where e.account_id = a.id and e.sequence > coalesce(known.sequence, 0) and e.posted_at <= :at
  ) as later on true
  where a.id = any(cast(:ids as uuid[])) and a.tracking = 'DERIVED'
)
select p.id, coalesce(sum(p.posted), 0) as posted
from part as p
group by p.id;

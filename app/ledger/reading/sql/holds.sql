-- name: holds_by_id
select
  id, account_id, purpose, currency, amount, captured, status, expires_at, description, metadata, external_reference,
  failure_reason, created_at, closed_at
from hold
where id = any(cast(:ids as uuid[]));

-- name: holds_ascending
-- One range of an index for each status, read no further than the page needs. That these are ranges and no conditions
-- of equality keeps the planner from going through all holds in the order of their ids, past all that are not wanted.
-- Of the two branches one reads nothing: a list is an account's or everybody's.
select
  found.id, found.account_id, found.purpose, found.currency, found.amount, found.captured, found.status,
  found.expires_at, found.description, found.metadata, found.external_reference, found.failure_reason,
  found.created_at, found.closed_at
from unnest(cast(:statuses as text[])) as wanted (status)
join lateral (
  (
    select h.*
    from hold as h
    where (h.account_id, h.purpose, h.status, h.id) > (:account_id, :purpose, wanted.status, :above)
      and (h.account_id, h.purpose, h.status, h.id) < (:account_id, :purpose, wanted.status, :below)
    order by h.account_id, h.purpose, h.status, h.id
    limit :limit
  )
  union all
  (
    select h.*
    from hold as h
    where cast(:account_id as uuid) is null
      and (h.purpose, h.status, h.id) > (:purpose, wanted.status, :above)
      and (h.purpose, h.status, h.id) < (:purpose, wanted.status, :below)
    order by h.purpose, h.status, h.id
    limit :limit
  )
) as found on true
order by found.id
limit :limit;

-- name: holds_descending
select
  found.id, found.account_id, found.purpose, found.currency, found.amount, found.captured, found.status,
  found.expires_at, found.description, found.metadata, found.external_reference, found.failure_reason,
  found.created_at, found.closed_at
from unnest(cast(:statuses as text[])) as wanted (status)
join lateral (
  (
    select h.*
    from hold as h
    where (h.account_id, h.purpose, h.status, h.id) > (:account_id, :purpose, wanted.status, :above)
      and (h.account_id, h.purpose, h.status, h.id) < (:account_id, :purpose, wanted.status, :below)
    order by h.account_id desc, h.purpose desc, h.status desc, h.id desc
    limit :limit
  )
  union all
  (
    select h.*
    from hold as h
    where cast(:account_id as uuid) is null
      and (h.purpose, h.status, h.id) > (:purpose, wanted.status, :above)
      and (h.purpose, h.status, h.id) < (:purpose, wanted.status, :below)
    order by h.purpose desc, h.status desc, h.id desc
    limit :limit
  )
) as found on true
order by found.id desc
limit :limit;

-- name: accounts_of_holds
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes,
  h.id as hold_id
from hold as h
join account as a on a.id = h.account_id
where h.id = any(cast(:ids as uuid[]));

-- name: transactions_of_holds
select hold_id, id
from journal
where hold_id = any(cast(:ids as uuid[]))
order by posted_at, id;

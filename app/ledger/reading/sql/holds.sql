-- name: holds_by_id
select
  id, account_id, purpose, currency, amount, captured, status, expires_at, description, metadata, external_reference,
  failure_reason, created_at, closed_at
from hold
where id = any(cast(:ids as uuid[]));

-- name: holds_ascending
-- Withdrawals are shown by themselves and not among the holds.
select
  id, account_id, purpose, currency, amount, captured, status, expires_at, description, metadata, external_reference,
  failure_reason, created_at, closed_at
from hold
where account_id = :account_id and id > :above and id < :below
  and purpose = 'HOLD'
  and (cast(:status as text) is null or status = :status)
order by id
limit :limit;

-- name: holds_descending
select
  id, account_id, purpose, currency, amount, captured, status, expires_at, description, metadata, external_reference,
  failure_reason, created_at, closed_at
from hold
where account_id = :account_id and id > :above and id < :below
  and purpose = 'HOLD'
  and (cast(:status as text) is null or status = :status)
order by id desc
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

-- name: transactions_by_id
select
  j.id, j.type, j.caller, j.description, j.external_reference, j.metadata, j.effective_at, j.posted_at, j.reverses_id,
  j.hold_id,
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

-- name: transaction_ids_ascending
select j.id
from journal as j
where j.id > :above and j.id < :below
  and (cast(:types as text[]) is null or j.type = any(:types))
  and (cast(:posted_from as timestamptz) is null or j.posted_at >= :posted_from)
  and (cast(:posted_before as timestamptz) is null or j.posted_at < :posted_before)
order by j.id
limit :limit;

-- name: transaction_ids_descending
select j.id
from journal as j
where j.id > :above and j.id < :below
  and (cast(:types as text[]) is null or j.type = any(:types))
  and (cast(:posted_from as timestamptz) is null or j.posted_at >= :posted_from)
  and (cast(:posted_before as timestamptz) is null or j.posted_at < :posted_before)
order by j.id desc
limit :limit;

-- name: reversals
select reverses_id, id
from journal
where reverses_id = any(cast(:ids as uuid[]))
order by reversal_number;

-- name: known_key
select caller, key, operation, fingerprint, fields, transaction_id, account_id
from idempotency_key
where caller = :caller and key = :key;

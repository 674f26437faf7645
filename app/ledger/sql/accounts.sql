-- name: insert_account
-- No row comes back where the code is taken.
insert into account (id, code, owner, kind, currency, allow_negative, tracking, stripes, metadata)
values (:id, :code, :owner, :kind, :currency, :allow_negative, :tracking, :stripes, cast(:metadata as jsonb))
on conflict (code) do nothing
returning
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes;

-- name: insert_stripes
insert into account (id, parent_id, purpose, stripe, kind, currency, allow_negative)
select stripe.id, :parent_id, 'STRIPE', stripe.number - 1, :kind, :currency, :allow_negative
from unnest(cast(:ids as uuid[])) with ordinality as stripe (id, number);

-- name: wait_for_postings
-- Of a derived account, whose row they don't lock: they share this lock, and whoever comes later waits behind this one.
select pg_advisory_xact_lock(23070, hashtext(cast(cast(:id as uuid) as text)));

-- name: lock_with_children
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes
from account
where id = :id or parent_id = :id
order by id
for no key update;

-- name: set_status
-- A held child's own status means nothing: what is set aside is released even while the account is frozen.
update account
set status = :status
where id = :id or (parent_id = :id and purpose = 'STRIPE');

-- name: insert_status_change
insert into account_status_change (account_id, status, reason, caller)
values (:id, :status, :reason, :caller);

-- name: insert_account_key
-- No row comes back where the key was booked meanwhile.
insert into idempotency_key (caller, key, operation, fingerprint, fields, account_id)
values (:caller, :key, :operation, :fingerprint, cast(:fields as jsonb), :account_id)
on conflict do nothing
returning 1;

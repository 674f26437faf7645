-- name: insert_account
-- No row comes back where the code is taken.
insert into account (id, code, owner, kind, currency, allow_negative, tracking, metadata)
values (:id, :code, :owner, :kind, :currency, :allow_negative, :tracking, cast(:metadata as jsonb))
on conflict (code) do nothing
returning
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at;

-- name: insert_account_key
-- No row comes back where the key was booked meanwhile.
insert into idempotency_key (caller, key, operation, fingerprint, fields, account_id)
values (:caller, :key, :operation, :fingerprint, cast(:fields as jsonb), :account_id)
on conflict do nothing
returning 1;

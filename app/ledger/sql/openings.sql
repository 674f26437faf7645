-- name: insert_accounts
-- In the order of their codes, so that two imports of one file wait for each other and never in a circle.
insert into account (id, code, owner, kind, currency)
select asked.*
from json_to_recordset(cast(:accounts as json)) as asked (
    id uuid, code text, owner text, kind text, currency text
  )
order by asked.code
on conflict (code) do nothing;

-- name: standings
-- What an account began with is read from the lines of its opening itself. Where it is a striped one, they stand on its
-- stripes.
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes,
  a.balance, opened.amount as opened_with
from account as a
left join idempotency_key as k on k.caller = :caller and k.key = :key_prefix || a.id
left join lateral (
  select cast(sum(e.amount) as bigint) as amount
  from entry as e
  join account as moved on moved.id = e.account_id
  where e.transaction_id = k.transaction_id and a.id in (moved.id, moved.parent_id)
) as opened on true
where a.code = any(cast(:codes as text[]));

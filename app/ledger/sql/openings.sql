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
-- What an account began with is read from the opening's own lines: the first is the equity account's, and the others
-- sum to its opposite, on however many stripes they stand. The limit keeps the look-up what it is written as, two
-- probes of whole unique indexes for each account; joined freely, all openings ever booked would be read for each.
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes,
  a.balance, -equity.amount as opened_with
from account as a
left join lateral (
  select e.amount
  from idempotency_key as k
  join entry as e on e.transaction_id = k.transaction_id and e.leg = 0
  where k.caller = :caller and k.key = :key_prefix || a.id
  limit 1
) as equity on true
where a.code = any(cast(:codes as text[]));

-- name: lock_accounts
-- The order is the same in every path that locks, whatever the requests say, so that two batches can wait for each
-- other but never in a circle. NO KEY UPDATE lets the foreign-key checks of other postings pass.
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at,
  balance, sequence, posted_at
from account
where id = any(cast(:ids as uuid[]))
order by id
for no key update;

-- name: known_keys
-- Runs after the locks, in a statement and so with a snapshot of its own: it sees every key that was booked on the
-- locked accounts before. A row always comes back, for the clock: now() would be the transaction's start, which is
-- older than postings that this transaction has waited for.
select
  clock_timestamp() as now,
  k.caller, k.key, k.operation, k.fingerprint, k.fields, k.transaction_id, k.account_id
from (select 1) as always
left join (
  idempotency_key as k
  join unnest(cast(:callers as text[]), cast(:keys as text[])) as asked (caller, key)
    on asked.caller = k.caller and asked.key = k.key
) on true;

-- name: write_postings
-- One statement writes all of a batch, because the checks on journal and entry look at whole statements. It answers
-- how many keys were new: fewer than asked means that another process has booked one meanwhile.
-- Rows travel as JSON: with a dozen columns it costs the client a quarter of what as many arrays do.
-- Keys are inserted in order, for the same reason as accounts are locked in order.
with transactions as materialized (
  select *
  from json_to_recordset(cast(:transactions as json)) as t (
      nth int, id uuid, type text, caller text, description text, external_reference text, metadata jsonb,
      reverses_id uuid, effective_at timestamptz, key text, operation text, fingerprint text, fields jsonb,
      touched_ids uuid[], touched_sequences bigint[]
    )
), moved as (
  update account as a
  set balance = m.balance, sequence = m.sequence, posted_at = cast(:posted_at as timestamptz)
  from json_to_recordset(cast(:accounts as json)) as m (id uuid, balance bigint, sequence bigint)
  where a.id = m.id
), booked as (
  insert into journal (
    id, type, caller, description, external_reference, metadata, reverses_id, effective_at, posted_at
  )
  select
    id, type, caller, description, external_reference, metadata, reverses_id,
    coalesce(effective_at, cast(:posted_at as timestamptz)), cast(:posted_at as timestamptz)
  from transactions
), entered as (
  insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
  select e.*, cast(:posted_at as timestamptz)
  from json_to_recordset(cast(:entries as json)) as e (
      account_id uuid, sequence bigint, transaction_id uuid, leg smallint, currency text, amount bigint,
      balance_after bigint
    )
), told as (
  insert into outbox (transaction_id, account_ids, sequences)
  select id, touched_ids, touched_sequences from transactions order by nth
), keyed as (
  insert into idempotency_key (caller, key, operation, fingerprint, fields, transaction_id)
  select caller, key, operation, decode(fingerprint, 'hex'), fields, id from transactions order by caller, key
  on conflict do nothing
  returning 1
)
select count(*) as new_keys from keyed;

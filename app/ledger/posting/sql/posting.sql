-- name: lock_accounts
-- The order is the same in every path that locks, whatever the requests say, so that two batches can wait for each
-- other but never in a circle. NO KEY UPDATE lets the foreign-key checks of other postings pass. A hot account's row is
-- locked only where a batch means to, as the parent of what is set aside: locking it would stop whom it is hot for.
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes,
  balance, sequence, posted_at, stripe
from account
where id = any(cast(:ids as uuid[])) and (tracking = 'TRACKED' or id = any(cast(:parents as uuid[])))
order by id
for no key update;

-- name: hot_accounts
-- Asked where a row was missing among the locked ones: whether an account is hot never changes, so nothing is locked.
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes
from account
where tracking <> 'TRACKED' and id = any(cast(:ids as uuid[]));

-- name: enter_hot
-- The stamp is announced before it is taken, so that nobody who looks between the two takes a lower one for settled.
-- And a change of a derived account's status waits for those who are posting to it, in a queue where none overtakes it.
select
  announce_stamp(),
  count(pg_advisory_xact_lock_shared(23070, hashtext(cast(derived.id as text))))
from unnest(cast(:derived as uuid[])) as derived (id);

-- name: derived_accounts
-- After entering, and so with a snapshot that shows the status as it stays until this transaction ends.
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes,
  balance, sequence, posted_at, stripe
from account
where id = any(cast(:ids as uuid[]));

-- name: known_keys
-- Runs after the locks, in a statement and so with a snapshot of its own: it sees every key that was booked on the
-- locked accounts before. A row always comes back, for the clock: now() would be the transaction's start, which is
-- older than postings that this transaction has waited for.
select
  clock_timestamp() as now, always.stamp_base,
  k.caller, k.key, k.operation, k.fingerprint, k.fields, k.transaction_id, k.account_id
from (select case when cast(:stamped as boolean) then nextval('hot_stamp') else 0 end as stamp_base) as always
left join (
  idempotency_key as k
  join unnest(cast(:callers as text[]), cast(:keys as text[])) as asked (caller, key)
    on asked.caller = k.caller and asked.key = k.key
) on true;

-- name: holds
-- Every posting that ends a hold locks its account's held child first, so what is read here stays.
select
  id, account_id, purpose, currency, amount, captured, status, expires_at, description, metadata, external_reference,
  failure_reason, created_at, closed_at
from hold
where id = any(cast(:ids as uuid[]));

-- name: taken_back
-- How much each of them took back is what its entries credit.
select
  j.reverses_id,
  count(distinct j.id) as times,
  bool_or(j.type = 'reversal') as reversed,
  sum(e.amount) filter (where e.amount > 0) as amount
from journal as j
join entry as e on e.transaction_id = j.id
where j.reverses_id = any(cast(:ids as uuid[]))
group by j.reverses_id;

-- name: open_children
-- The parents are locked, so nobody else opens the same.
insert into account (id, parent_id, purpose, kind, currency)
select c.*
from json_to_recordset(cast(:children as json)) as c (id uuid, parent_id uuid, purpose text, kind text, currency text);

-- name: write_postings
-- One statement writes all of a batch, because the checks on journal and entry look at whole statements. It answers
-- how many keys were new: fewer than asked means that another process has booked one meanwhile.
-- Rows travel as JSON: with a dozen columns it costs the client a quarter of what as many arrays do.
-- Keys are inserted in order, for the same reason as accounts are locked in order.
with transactions as materialized (
  select *
  from json_to_recordset(cast(:transactions as json)) as t (
      nth int, id uuid, type text, caller text, description text, external_reference text, metadata jsonb,
      reverses_id uuid, reversal_number int, hold_id uuid, effective_at timestamptz, key text, operation text,
      fingerprint text, fields jsonb, touched_ids uuid[], touched_sequences bigint[]
    )
), moved as (
  update account as a
  set balance = m.balance, sequence = m.sequence, posted_at = cast(:posted_at as timestamptz)
  from json_to_recordset(cast(:accounts as json)) as m (id uuid, balance bigint, sequence bigint)
  where a.id = m.id
), booked as (
  insert into journal (
    id, type, caller, description, external_reference, metadata, reverses_id, reversal_number, hold_id,
    effective_at, posted_at
  )
  select
    id, type, caller, description, external_reference, metadata, reverses_id, reversal_number, hold_id,
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

-- name: place_holds
insert into hold (
  id, account_id, purpose, currency, amount, expires_at, description, metadata, external_reference, created_at
)
select h.*
from json_to_recordset(cast(:holds as json)) as h (
    id uuid, account_id uuid, purpose text, currency text, amount bigint, expires_at timestamptz, description text,
    metadata jsonb, external_reference text, created_at timestamptz
  );

-- name: close_holds
update hold as h
set
  status = c.status, captured = c.captured, external_reference = c.external_reference,
  failure_reason = c.failure_reason, closed_at = c.closed_at
from json_to_recordset(cast(:holds as json)) as c (
    id uuid, status text, captured bigint, external_reference text, failure_reason text, closed_at timestamptz
  )
where h.id = c.id;

"""The ledger: accounts, journal, entries, idempotency keys, outbox and event log, and what the database itself refuses.

The owner of the schema runs migrations; the server runs as `saldo_runtime`, which can add to the journal and never
change it. There is no downgrade: money that has been booked can't be taken back by a migration.
"""

from alembic import op

revision = "0001"
down_revision = None

ROLE = """
do $$
begin
  if not exists (select from pg_roles where rolname = 'saldo_runtime') then
    create role saldo_runtime nologin;
  end if;
exception
  -- Another database of the same cluster was being migrated at the same moment.
  when duplicate_object or unique_violation then null;
end
$$
"""

# So that one login can own the schema and still work with the rights of the server, where it may grant them at all: a
# role that somebody else has made is somebody else's to grant.
MEMBERSHIP = """
do $$
begin
  if not pg_has_role(current_user, 'saldo_runtime', 'member') then
    execute format('grant saldo_runtime to %I', current_user);
  end if;
exception
  when insufficient_privilege then null;
end
$$
"""

# The hot columns (balance, sequence, posted_at) are in no index, so that updates of them stay on their page (HOT);
# the fill factor leaves room there, and vacuum comes early because a busy row leaves a dead version with each batch.
ACCOUNT = """
create table account (
  id uuid primary key,
  parent_id uuid references account,
  purpose text not null default 'MAIN' check (purpose in ('MAIN', 'HELD', 'STRIPE')),
  stripe smallint,
  code text unique check (char_length(code) between 1 and 128),
  owner text check (char_length(owner) between 1 and 255),
  kind text not null check (kind in ('ASSET', 'LIABILITY', 'EQUITY', 'REVENUE', 'EXPENSE')),
  currency text not null check (char_length(currency) = 3),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
  allow_negative boolean not null default false,
  tracking text not null default 'TRACKED' check (tracking in ('TRACKED', 'STRIPED', 'DERIVED')),
  metadata jsonb,
  created_at timestamptz not null default clock_timestamp(),
  balance bigint not null default 0,
  sequence bigint not null default 0 check (sequence >= 0),
  posted_at timestamptz,
  constraint account_child_has_parent check ((purpose = 'MAIN') = (parent_id is null)),
  constraint account_child_has_no_code check (purpose = 'MAIN' or code is null),
  constraint account_stripe_is_numbered check ((purpose = 'STRIPE') = (stripe is not null)),
  constraint account_not_overdrawn check (
    allow_negative
    or case when kind in ('LIABILITY', 'EQUITY', 'REVENUE') then balance >= 0 else balance <= 0 end
  )
)
with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
)
"""

ACCOUNT_CHILD = """
create unique index account_child on account (parent_id, purpose, coalesce(stripe, 0)) where parent_id is not null
"""

ACCOUNT_BY_OWNER = """
create index account_by_owner on account (owner, id) where owner is not null
"""

JOURNAL = """
create table journal (
  id uuid primary key,
  type text not null check (char_length(type) between 1 and 32),
  caller text not null,
  description text check (char_length(description) <= 500),
  external_reference text check (char_length(external_reference) <= 128),
  metadata jsonb,
  reverses_id uuid references journal,
  effective_at timestamptz not null,
  posted_at timestamptz not null
)
"""

JOURNAL_REVERSAL = """
create index journal_reversal on journal (reverses_id) where reverses_id is not null
"""

# The key serves history, resume and uniqueness at once. That the transaction exists is checked below, more strictly than by
# a foreign key: it must have been written by the very transaction that writes its entries.
ENTRY = """
create table entry (
  account_id uuid not null references account,
  sequence bigint not null check (sequence > 0),
  transaction_id uuid not null,
  leg smallint not null,
  currency text not null,
  amount bigint not null check (amount <> 0),
  balance_after bigint not null,
  posted_at timestamptz not null,
  primary key (account_id, sequence)
)
"""

ENTRY_OF_TRANSACTION = """
create unique index entry_of_transaction on entry (transaction_id, leg)
"""

# Neither the keys nor the outbox point to the journal by a foreign key: their rows are written by the statement that writes
# the journal's row, which nothing can delete, and each foreign key would cost a posting about 8 microseconds.
IDEMPOTENCY_KEY = """
create table idempotency_key (
  caller text not null,
  key text not null check (char_length(key) between 1 and 128),
  operation text not null,
  fingerprint bytea not null,
  fields jsonb not null,
  transaction_id uuid,
  account_id uuid,
  primary key (caller, key),
  constraint idempotency_key_has_one_result check (num_nonnulls(transaction_id, account_id) = 1)
)
"""

# The outbox is a queue: rows leave it when the relay gives them their position in the event log, so its cost depends on
# what is pending and not on history.
OUTBOX = """
create table outbox (
  id bigint generated always as identity primary key,
  transaction_id uuid not null,
  account_ids uuid[] not null,
  sequences bigint[] not null,
  created_at timestamptz not null default clock_timestamp()
)
with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_threshold = 1000000000
)
"""

EVENT = """
create table event (
  position bigint primary key,
  transaction_id uuid not null unique,
  account_ids uuid[] not null,
  sequences bigint[] not null
)
"""

RELAY = """
create table relay_lane (
  lane smallint primary key,
  position bigint not null default 0
)
"""

REFUSE_CHANGE = """
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'table % is append only', tg_table_name using errcode = 'restrict_violation';
end
$$
"""

APPEND_ONLY = tuple(
    f"""
    create trigger {table}_append_only before update or delete or truncate on {table}
    for each statement execute function refuse_change()
    """
    for table in ("journal", "entry", "idempotency_key", "event")
)

# Each check looks at all rows of a statement at once, so that its cost grows with the legs and not with their square.
# A transaction's rows are therefore written by one statement.
CHECK_ENTRIES = """
create function check_entries() returns trigger language plpgsql as $$
declare
  culprit uuid;
  same_currency boolean;
begin
  select e.transaction_id into culprit
  from new_entries e group by e.transaction_id, e.currency having sum(e.amount) <> 0 limit 1;
  if found then
    raise exception 'transaction % does not sum to zero', culprit
      using errcode = 'check_violation', constraint = 'transaction_sums_to_zero';
  end if;

  -- The database transaction that wrote a journal row is the only one that may give it entries.
  select t.transaction_id into culprit
  from (select distinct e.transaction_id from new_entries e) t
  left join journal j on j.id = t.transaction_id
  where j.xmin is distinct from cast(pg_current_xact_id() as xid) limit 1;
  if found then
    raise exception 'transaction % is closed', culprit
      using errcode = 'check_violation', constraint = 'transaction_is_closed';
  end if;

  -- Each entry goes on from the one before it, in this statement or from earlier.
  select e.account_id into culprit
  from (
    select
      n.account_id, n.sequence, n.amount, n.balance_after,
      lag(n.sequence) over along as sequence_before, lag(n.balance_after) over along as balance_before
    from new_entries n window along as (partition by n.account_id order by n.sequence)
  ) e
  left join entry p
    on e.sequence_before is null and p.account_id = e.account_id and p.sequence = e.sequence - 1
  where
    e.sequence <> coalesce(e.sequence_before, p.sequence, 0) + 1
    or e.balance_after <> coalesce(e.balance_before, p.balance_after, 0) + e.amount
  limit 1;
  if found then
    raise exception 'the entries of account % are not a chain', culprit
      using errcode = 'check_violation', constraint = 'entry_follows_its_predecessor';
  end if;

  -- An account's row follows its entries, so that the check against overdrafts on the row covers them.
  for culprit, same_currency in
    select last.account_id, a.currency = last.currency
    from (
      select distinct on (e.account_id, e.currency) e.account_id, e.currency, e.sequence, e.balance_after
      from new_entries e order by e.account_id, e.currency, e.sequence desc
    ) last
    join account a on a.id = last.account_id
    where a.currency <> last.currency or a.sequence <> last.sequence or a.balance <> last.balance_after
  loop
    if same_currency then
      raise exception 'account % does not stand at its last entry', culprit
        using errcode = 'check_violation', constraint = 'account_stands_at_last_entry';
    end if;
    raise exception 'account % is not of the currency of its entry', culprit
      using errcode = 'check_violation', constraint = 'entry_in_currency_of_account';
  end loop;
  return null;
end
$$
"""

ENTRIES_CHECKED = """
create trigger entries_checked after insert on entry
referencing new table as new_entries for each statement execute function check_entries()
"""

# The other direction: no balance without the entry that explains it.
CHECK_ACCOUNTS = """
create function check_accounts() returns trigger language plpgsql as $$
declare
  culprit uuid;
begin
  select a.id into culprit
  from new_accounts a
  left join lateral (
    select e.sequence, e.balance_after from entry e where e.account_id = a.id order by e.sequence desc limit 1
  ) last on true
  where a.sequence <> coalesce(last.sequence, 0) or a.balance <> coalesce(last.balance_after, 0) limit 1;
  if found then
    raise exception 'account % does not stand at its last entry', culprit
      using errcode = 'check_violation', constraint = 'account_stands_at_last_entry';
  end if;
  return null;
end
$$
"""

ACCOUNTS_CHECKED = """
create trigger accounts_checked after update on account
referencing new table as new_accounts for each statement execute function check_accounts()
"""

CHECK_JOURNAL = """
create function check_journal() returns trigger language plpgsql as $$
declare
  culprit uuid;
begin
  select j.id into culprit
  from new_journal j where not exists (select from entry e where e.transaction_id = j.id) limit 1;
  if found then
    raise exception 'transaction % has no entries', culprit
      using errcode = 'check_violation', constraint = 'transaction_has_entries';
  end if;
  return null;
end
$$
"""

JOURNAL_CHECKED = """
create trigger journal_checked after insert on journal
referencing new table as new_journal for each statement execute function check_journal()
"""

# Temporary tables come first in a plain search path, so that a session could put its own `journal` before the real one
# and be checked against that. The plan of a check is made when a session first needs it and kept: one that was made
# while the tables were empty would go on reading them from end to end, so each look-up is held to its index.
HARDENED = """
do $$
declare
  name text;
begin
  foreach name in array array['refuse_change', 'check_entries', 'check_accounts', 'check_journal'] loop
    execute format('alter function %I() set search_path = %I, pg_temp', name, current_schema());
    execute format('alter function %I() set enable_seqscan = off', name);
    execute format('alter function %I() set enable_hashjoin = off', name);
    execute format('alter function %I() set enable_mergejoin = off', name);
  end loop;
end
$$
"""

RIGHTS = (
    "do $$ begin execute format('grant usage on schema %I to saldo_runtime', current_schema()); end $$",
    "grant select on account, schema_version, relay_lane to saldo_runtime",
    """
    grant insert (
      id, parent_id, purpose, stripe, code, owner, kind, currency, status, allow_negative, tracking, metadata
    ) on account to saldo_runtime
    """,
    "grant update (balance, sequence, posted_at, status) on account to saldo_runtime",
    "grant select, insert on journal, entry, idempotency_key, event to saldo_runtime",
    "grant select, insert, delete on outbox to saldo_runtime",
    "grant update (position) on relay_lane to saldo_runtime",
)


def upgrade() -> None:
    for statement in (
        *(ROLE, MEMBERSHIP),
        *(ACCOUNT, ACCOUNT_CHILD, ACCOUNT_BY_OWNER),
        *(JOURNAL, JOURNAL_REVERSAL),
        *(ENTRY, ENTRY_OF_TRANSACTION),
        IDEMPOTENCY_KEY,
        *(OUTBOX, EVENT, RELAY, "insert into relay_lane (lane) values (0)"),
        *(REFUSE_CHANGE, *APPEND_ONLY),
        *(CHECK_ENTRIES, ENTRIES_CHECKED, CHECK_ACCOUNTS, ACCOUNTS_CHECKED),
        *(CHECK_JOURNAL, JOURNAL_CHECKED, HARDENED),
        *RIGHTS,
    ):
        op.execute(statement)

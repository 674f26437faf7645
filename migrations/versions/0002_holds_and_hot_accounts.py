"""Holds, reversals that are counted, changes of status on record, and accounts that many postings want at once.

A striped account spreads its money over children, each of which is locked by itself; a derived account is never locked
and keeps no balance. Neither can number its entries 1, 2, 3 without a lock on the whole account, so their entries are
numbered by stamps, which ascend and have gaps; `hot_stamp` gives them out.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

ACCOUNT = (
    "alter table account add column stripes smallint",
    """
    alter table account add constraint account_stripes_are_counted check (
      case when tracking = 'STRIPED' then stripes between 2 and 256 and purpose = 'MAIN' else stripes is null end
    )
    """,
    # What a hot account has stands in its children's rows or in its entries alone.
    """
    alter table account add constraint account_hot_keeps_no_balance check (
      tracking = 'TRACKED' or (balance = 0 and sequence = 0 and posted_at is null)
    )
    """,
    # Nothing is locked when a derived account pays, so nothing could keep it from falling below zero.
    """
    alter table account add constraint account_derived_may_be_negative check (
      tracking <> 'DERIVED' or (allow_negative and purpose = 'MAIN')
    )
    """,
    "create index account_hot on account (tracking, id) where tracking <> 'TRACKED'",
)

STATUS_CHANGE = """
create table account_status_change (
  id bigint generated always as identity primary key,
  account_id uuid not null references account,
  status text not null check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
  reason text check (char_length(reason) <= 500),
  caller text not null,
  changed_at timestamptz not null default clock_timestamp()
)
"""

STATUS_CHANGE_BY_ACCOUNT = """
create index account_status_change_by_account on account_status_change (account_id, id)
"""

# A reversal counts as the first, so the unique key lets two that race end as one; refunds are numbered one after the other.
JOURNAL = (
    "alter table journal add column reversal_number int check (reversal_number > 0)",
    "alter table journal add column hold_id uuid",
    """
    alter table journal add constraint journal_reversal_is_numbered
    check ((reverses_id is null) = (reversal_number is null))
    """,
    "drop index journal_reversal",
    """
    create unique index journal_reversal on journal (reverses_id, reversal_number) where reverses_id is not null
    """,
    "create index journal_of_hold on journal (hold_id) where hold_id is not null",
)

# The amounts are those of the hold's own entries, repeated so that a hold can be judged without reading them.
HOLD = """
create table hold (
  id uuid primary key,
  account_id uuid not null references account,
  purpose text not null check (purpose in ('HOLD', 'WITHDRAWAL')),
  currency text not null,
  amount bigint not null check (amount > 0),
  captured bigint not null default 0,
  status text not null default 'OPEN' check (status in ('OPEN', 'CAPTURED', 'VOIDED', 'EXPIRED')),
  expires_at timestamptz,
  description text check (char_length(description) <= 500),
  metadata jsonb,
  external_reference text check (char_length(external_reference) <= 128),
  failure_reason text check (char_length(failure_reason) <= 500),
  created_at timestamptz not null,
  closed_at timestamptz,
  constraint hold_captures_at_most_its_amount check (captured between 0 and amount),
  constraint hold_captures_something check ((captured > 0) = (status = 'CAPTURED')),
  constraint hold_is_open_until_closed check ((closed_at is null) = (status = 'OPEN'))
)
with (fillfactor = 80)
"""

# Each status of each purpose is a range of its own, in the order of its ids: few withdrawals are found among many holds,
# and what is open among all that has been closed.
HOLD_OF_ACCOUNT = """
create index hold_of_account on hold (account_id, purpose, status, id)
"""

HOLD_OF_ANYBODY = """
create index hold_of_anybody on hold (purpose, status, id)
"""

HOLD_THAT_EXPIRES = """
create index hold_that_expires on hold (expires_at) where status = 'OPEN' and expires_at is not null
"""

REFUSE_REOPENING = """
create function refuse_reopening() returns trigger language plpgsql as $$
declare
  culprit uuid;
begin
  select b.id into culprit from holds_before b where b.status <> 'OPEN' limit 1;
  if found then
    raise exception 'hold % is closed', culprit using errcode = 'restrict_violation', constraint = 'hold_closes_once';
  end if;
  return null;
end
$$
"""

HOLD_CLOSES_ONCE = """
create trigger hold_closes_once after update on hold
referencing old table as holds_before for each statement execute function refuse_reopening()
"""

APPEND_ONLY = (
    """
    create trigger account_status_change_append_only before update or delete or truncate on account_status_change
    for each statement execute function refuse_change()
    """,
    """
    create trigger hold_stays before delete or truncate on hold
    for each statement execute function refuse_change()
    """,
    """
    create trigger snapshot_append_only before update or delete or truncate on snapshot
    for each statement execute function refuse_change()
    """,
)

# What a derived account had after the entry with this sequence; nothing can appear below that any more.
SNAPSHOT = """
create table snapshot (
  account_id uuid not null references account,
  sequence bigint not null,
  balance numeric not null,
  posted_at timestamptz not null,
  taken_at timestamptz not null default clock_timestamp(),
  primary key (account_id, sequence)
)
"""

# Nobody can make a balance up by a snapshot that isn't the one before it and the entries between.
CHECK_SNAPSHOTS = """
create function check_snapshots() returns trigger language plpgsql as $$
declare
  culprit uuid;
begin
  select s.account_id into culprit
  from new_snapshots s
  left join lateral (
    select p.sequence, p.balance from snapshot p
    where p.account_id = s.account_id and p.sequence < s.sequence order by p.sequence desc limit 1
  ) before on true
  where s.balance <> coalesce(before.balance, 0) + coalesce((
    select sum(e.amount) from entry e
    where e.account_id = s.account_id and e.sequence > coalesce(before.sequence, 0) and e.sequence <= s.sequence
  ), 0)
  limit 1;
  if found then
    raise exception 'the snapshot of account % is not the sum of its entries', culprit
      using errcode = 'check_violation', constraint = 'snapshot_sums_entries';
  end if;
  return null;
end
$$
"""

SNAPSHOTS_CHECKED = """
create trigger snapshots_checked after insert on snapshot
referencing new table as new_snapshots for each statement execute function check_snapshots()
"""

HOT_STAMP = (
    "create sequence hot_stamp as bigint no cycle cache 1",
    "select setval('hot_stamp', 1)",
)

# Whoever is about to take a stamp says so by a shared advisory lock on the last one given, and so on a number below its
# own, until its transaction ends. Read in this order, all stamps up to the answer belong to transactions that have ended.
# Such locks are told from anybody else's by the number 23069 in their upper 16 bits; the other 48 have room for any base.
SETTLED_STAMP = """
create function settled_stamp(out highest bigint, out settled bigint) language plpgsql as $$
begin
  select s.last_value into highest from hot_stamp s;
  select least(highest, min(((cast(l.classid as bigint) & 65535) << 32) | cast(l.objid as bigint))) into settled
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and cast(l.classid as bigint) >> 16 = 23069
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
end
$$
"""

ANNOUNCE_STAMP = """
create function announce_stamp() returns void language sql as $$
  select pg_advisory_xact_lock_shared((cast(23069 as bigint) << 48) | last_value) from hot_stamp
$$
"""

ENTRY = "alter table entry alter column balance_after drop not null"

# As before, but for lines of hot accounts: a stripe's are numbered upwards with gaps, a derived account's bear no balance
# and are in no order of their own. Only lines that break the ordinary rule are looked at more closely.
CHECK_ENTRIES = """
create or replace function check_entries() returns trigger language plpgsql as $$
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
  where (
      e.sequence <> coalesce(e.sequence_before, p.sequence, 0) + 1
      or e.balance_after is distinct from coalesce(e.balance_before, p.balance_after, 0) + e.amount
    )
    and not exists (
      select from account a
      where a.id = e.account_id
        and case
          when a.tracking = 'DERIVED' then e.balance_after is null and e.sequence > coalesce((
            select s.sequence from snapshot s where s.account_id = e.account_id order by s.sequence desc limit 1
          ), 0)
          when a.purpose = 'STRIPE' and e.sequence_before is not null
            then e.balance_after = e.balance_before + e.amount
          when a.purpose = 'STRIPE' then e.balance_after = e.amount + coalesce((
            select b.balance_after from entry b
            where b.account_id = e.account_id and b.sequence < e.sequence order by b.sequence desc limit 1
          ), 0)
          and not exists (
            select from entry b
            where b.account_id = e.account_id and b.sequence > e.sequence
              and b.transaction_id not in (select n.transaction_id from new_entries n)
          )
        end
    )
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
    where a.currency <> last.currency
      or (a.tracking <> 'DERIVED' and (a.sequence <> last.sequence or a.balance <> last.balance_after))
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

CHECK_ACCOUNTS = """
create or replace function check_accounts() returns trigger language plpgsql as $$
declare
  culprit uuid;
begin
  select a.id into culprit
  from new_accounts a
  left join lateral (
    select e.sequence, e.balance_after from entry e where e.account_id = a.id order by e.sequence desc limit 1
  ) last on true
  where a.tracking <> 'DERIVED'
    and (a.sequence <> coalesce(last.sequence, 0) or a.balance <> coalesce(last.balance_after, 0)) limit 1;
  if found then
    raise exception 'account % does not stand at its last entry', culprit
      using errcode = 'check_violation', constraint = 'account_stands_at_last_entry';
  end if;
  return null;
end
$$
"""

# Replacing a function takes its settings away.
HARDENED = """
do $$
declare
  name text;
begin
  foreach name in array array['check_entries', 'check_accounts', 'check_snapshots'] loop
    execute format('alter function %I() set search_path = %I, pg_temp', name, current_schema());
    execute format('alter function %I() set enable_seqscan = off', name);
    execute format('alter function %I() set enable_hashjoin = off', name);
    execute format('alter function %I() set enable_mergejoin = off', name);
  end loop;
  foreach name in array array['refuse_reopening', 'settled_stamp', 'announce_stamp'] loop
    execute format('alter function %I() set search_path = %I, pg_temp', name, current_schema());
  end loop;
end
$$
"""

RIGHTS = (
    "grant insert (stripes) on account to saldo_runtime",
    "grant select, insert on account_status_change, hold, snapshot to saldo_runtime",
    """
    grant update (captured, status, external_reference, failure_reason, closed_at) on hold to saldo_runtime
    """,
    "grant select, usage on sequence hot_stamp to saldo_runtime",
)


def upgrade() -> None:
    for statement in (
        *ACCOUNT,
        *(STATUS_CHANGE, STATUS_CHANGE_BY_ACCOUNT),
        *JOURNAL,
        *(HOLD, REFUSE_REOPENING, HOLD_CLOSES_ONCE),
        *(HOLD_OF_ACCOUNT, HOLD_OF_ANYBODY, HOLD_THAT_EXPIRES),
        *(SNAPSHOT, CHECK_SNAPSHOTS, SNAPSHOTS_CHECKED),
        *APPEND_ONLY,
        *(*HOT_STAMP, SETTLED_STAMP, ANNOUNCE_STAMP),
        *(ENTRY, CHECK_ENTRIES, CHECK_ACCOUNTS, HARDENED),
        *RIGHTS,
    ):
        op.execute(statement)

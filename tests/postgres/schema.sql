CREATE FUNCTION public.announce_stamp() RETURNS void
    LANGUAGE sql
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select pg_advisory_xact_lock_shared((cast(23069 as bigint) << 48) | last_value) from hot_stamp
$$;

ALTER FUNCTION public.announce_stamp() OWNER TO saldo_owner;

CREATE FUNCTION public.check_accounts() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
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
$$;

ALTER FUNCTION public.check_accounts() OWNER TO saldo_owner;

CREATE FUNCTION public.check_entries() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
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
$$;

ALTER FUNCTION public.check_entries() OWNER TO saldo_owner;

CREATE FUNCTION public.check_journal() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
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
$$;

ALTER FUNCTION public.check_journal() OWNER TO saldo_owner;

CREATE FUNCTION public.check_snapshots() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
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
$$;

ALTER FUNCTION public.check_snapshots() OWNER TO saldo_owner;

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
begin
  raise exception 'table % is append only', tg_table_name using errcode = 'restrict_violation';
end
$$;

ALTER FUNCTION public.refuse_change() OWNER TO saldo_owner;

CREATE FUNCTION public.refuse_reopening() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
declare
  culprit uuid;
begin
  select b.id into culprit from holds_before b where b.status <> 'OPEN' limit 1;
  if found then
    raise exception 'hold % is closed', culprit using errcode = 'restrict_violation', constraint = 'hold_closes_once';
  end if;
  return null;
end
$$;

ALTER FUNCTION public.refuse_reopening() OWNER TO saldo_owner;

CREATE FUNCTION public.settled_stamp(OUT highest bigint, OUT settled bigint) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  select s.last_value into highest from hot_stamp s;
  select least(highest, min(((cast(l.classid as bigint) & 65535) << 32) | cast(l.objid as bigint))) into settled
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and cast(l.classid as bigint) >> 16 = 23069
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
end
$$;

ALTER FUNCTION public.settled_stamp(OUT highest bigint, OUT settled bigint) OWNER TO saldo_owner;

CREATE TABLE public.account (
    id uuid NOT NULL,
    parent_id uuid,
    purpose text DEFAULT 'MAIN'::text NOT NULL,
    stripe smallint,
    code text,
    owner text,
    kind text NOT NULL,
    currency text NOT NULL,
    status text DEFAULT 'ACTIVE'::text NOT NULL,
    allow_negative boolean DEFAULT false NOT NULL,
    tracking text DEFAULT 'TRACKED'::text NOT NULL,
    metadata jsonb,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    balance bigint DEFAULT 0 NOT NULL,
    sequence bigint DEFAULT 0 NOT NULL,
    posted_at timestamp with time zone,
    stripes smallint,
    CONSTRAINT account_child_has_no_code CHECK (((purpose = 'MAIN'::text) OR (code IS NULL))),
    CONSTRAINT account_child_has_parent CHECK (((purpose = 'MAIN'::text) = (parent_id IS NULL))),
    CONSTRAINT account_code_check CHECK (((char_length(code) >= 1) AND (char_length(code) <= 128))),
    CONSTRAINT account_currency_check CHECK ((char_length(currency) = 3)),
    CONSTRAINT account_derived_may_be_negative CHECK (((tracking <> 'DERIVED'::text) OR (allow_negative AND (purpose = 'MAIN'::text)))),
    CONSTRAINT account_hot_keeps_no_balance CHECK (((tracking = 'TRACKED'::text) OR ((balance = 0) AND (sequence = 0) AND (posted_at IS NULL)))),
    CONSTRAINT account_kind_check CHECK ((kind = ANY (ARRAY['ASSET'::text, 'LIABILITY'::text, 'EQUITY'::text, 'REVENUE'::text, 'EXPENSE'::text]))),
    CONSTRAINT account_not_overdrawn CHECK ((allow_negative OR
CASE
    WHEN (kind = ANY (ARRAY['LIABILITY'::text, 'EQUITY'::text, 'REVENUE'::text])) THEN (balance >= 0)
    ELSE (balance <= 0)
END)),
    CONSTRAINT account_owner_check CHECK (((char_length(owner) >= 1) AND (char_length(owner) <= 255))),
    CONSTRAINT account_purpose_check CHECK ((purpose = ANY (ARRAY['MAIN'::text, 'HELD'::text, 'STRIPE'::text]))),
    CONSTRAINT account_sequence_check CHECK ((sequence >= 0)),
    CONSTRAINT account_status_check CHECK ((status = ANY (ARRAY['ACTIVE'::text, 'FROZEN'::text, 'CLOSED'::text]))),
    CONSTRAINT account_stripe_is_numbered CHECK (((purpose = 'STRIPE'::text) = (stripe IS NOT NULL))),
    CONSTRAINT account_stripes_are_counted CHECK (
CASE
    WHEN (tracking = 'STRIPED'::text) THEN (((stripes >= 2) AND (stripes <= 256)) AND (purpose = 'MAIN'::text))
    ELSE (stripes IS NULL)
END),
    CONSTRAINT account_tracking_check CHECK ((tracking = ANY (ARRAY['TRACKED'::text, 'STRIPED'::text, 'DERIVED'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE public.account OWNER TO saldo_owner;

CREATE TABLE public.account_status_change (
    id bigint NOT NULL,
    account_id uuid NOT NULL,
    status text NOT NULL,
    reason text,
    caller text NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT account_status_change_reason_check CHECK ((char_length(reason) <= 500)),
    CONSTRAINT account_status_change_status_check CHECK ((status = ANY (ARRAY['ACTIVE'::text, 'FROZEN'::text, 'CLOSED'::text])))
);

ALTER TABLE public.account_status_change OWNER TO saldo_owner;

ALTER TABLE public.account_status_change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.account_status_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.entry (
    account_id uuid NOT NULL,
    sequence bigint NOT NULL,
    transaction_id uuid NOT NULL,
    leg smallint NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    balance_after bigint,
    posted_at timestamp with time zone NOT NULL,
    CONSTRAINT entry_amount_check CHECK ((amount <> 0)),
    CONSTRAINT entry_sequence_check CHECK ((sequence > 0))
);

ALTER TABLE public.entry OWNER TO saldo_owner;

CREATE TABLE public.event (
    "position" bigint NOT NULL,
    transaction_id uuid NOT NULL,
    account_ids uuid[] NOT NULL,
    sequences bigint[] NOT NULL
);

ALTER TABLE public.event OWNER TO saldo_owner;

CREATE TABLE public.hold (
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    purpose text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    captured bigint DEFAULT 0 NOT NULL,
    status text DEFAULT 'OPEN'::text NOT NULL,
    expires_at timestamp with time zone,
    description text,
    metadata jsonb,
    external_reference text,
    failure_reason text,
    created_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    CONSTRAINT hold_amount_check CHECK ((amount > 0)),
    CONSTRAINT hold_captures_at_most_its_amount CHECK (((captured >= 0) AND (captured <= amount))),
    CONSTRAINT hold_captures_something CHECK (((captured > 0) = (status = 'CAPTURED'::text))),
    CONSTRAINT hold_description_check CHECK ((char_length(description) <= 500)),
    CONSTRAINT hold_external_reference_check CHECK ((char_length(external_reference) <= 128)),
    CONSTRAINT hold_failure_reason_check CHECK ((char_length(failure_reason) <= 500)),
    CONSTRAINT hold_is_open_until_closed CHECK (((closed_at IS NULL) = (status = 'OPEN'::text))),
    CONSTRAINT hold_purpose_check CHECK ((purpose = ANY (ARRAY['HOLD'::text, 'WITHDRAWAL'::text]))),
    CONSTRAINT hold_status_check CHECK ((status = ANY (ARRAY['OPEN'::text, 'CAPTURED'::text, 'VOIDED'::text, 'EXPIRED'::text])))
)
WITH (fillfactor='80');

ALTER TABLE public.hold OWNER TO saldo_owner;

CREATE SEQUENCE public.hot_stamp
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.hot_stamp OWNER TO saldo_owner;

CREATE TABLE public.idempotency_key (
    caller text NOT NULL,
    key text NOT NULL,
    operation text NOT NULL,
    fingerprint bytea NOT NULL,
    fields jsonb NOT NULL,
    transaction_id uuid,
    account_id uuid,
    CONSTRAINT idempotency_key_has_one_result CHECK ((num_nonnulls(transaction_id, account_id) = 1)),
    CONSTRAINT idempotency_key_key_check CHECK (((char_length(key) >= 1) AND (char_length(key) <= 128)))
);

ALTER TABLE public.idempotency_key OWNER TO saldo_owner;

CREATE TABLE public.journal (
    id uuid NOT NULL,
    type text NOT NULL,
    caller text NOT NULL,
    description text,
    external_reference text,
    metadata jsonb,
    reverses_id uuid,
    effective_at timestamp with time zone NOT NULL,
    posted_at timestamp with time zone NOT NULL,
    reversal_number integer,
    hold_id uuid,
    CONSTRAINT journal_description_check CHECK ((char_length(description) <= 500)),
    CONSTRAINT journal_external_reference_check CHECK ((char_length(external_reference) <= 128)),
    CONSTRAINT journal_reversal_is_numbered CHECK (((reverses_id IS NULL) = (reversal_number IS NULL))),
    CONSTRAINT journal_reversal_number_check CHECK ((reversal_number > 0)),
    CONSTRAINT journal_type_check CHECK (((char_length(type) >= 1) AND (char_length(type) <= 32)))
);

ALTER TABLE public.journal OWNER TO saldo_owner;

CREATE TABLE public.outbox (
    id bigint NOT NULL,
    transaction_id uuid NOT NULL,
    account_ids uuid[] NOT NULL,
    sequences bigint[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_threshold='1000000000');

ALTER TABLE public.outbox OWNER TO saldo_owner;

ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.relay_lane (
    lane smallint NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL
);

ALTER TABLE public.relay_lane OWNER TO saldo_owner;

CREATE TABLE public.schema_version (
    version_num character varying(32) NOT NULL
);

ALTER TABLE public.schema_version OWNER TO saldo_owner;

CREATE TABLE public.snapshot (
    account_id uuid NOT NULL,
    sequence bigint NOT NULL,
    balance numeric NOT NULL,
    posted_at timestamp with time zone NOT NULL,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE public.snapshot OWNER TO saldo_owner;

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_code_key UNIQUE (code);

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.account_status_change
    ADD CONSTRAINT account_status_change_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (account_id, sequence);

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_transaction_id_key UNIQUE (transaction_id);

ALTER TABLE ONLY public.hold
    ADD CONSTRAINT hold_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (caller, key);

ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.relay_lane
    ADD CONSTRAINT relay_lane_pkey PRIMARY KEY (lane);

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (account_id, sequence);

CREATE INDEX account_by_owner ON public.account USING btree (owner, id) WHERE (owner IS NOT NULL);

CREATE UNIQUE INDEX account_child ON public.account USING btree (parent_id, purpose, COALESCE((stripe)::integer, 0)) WHERE (parent_id IS NOT NULL);

CREATE INDEX account_hot ON public.account USING btree (tracking, id) WHERE (tracking <> 'TRACKED'::text);

CREATE INDEX account_status_change_by_account ON public.account_status_change USING btree (account_id, id);

CREATE UNIQUE INDEX entry_of_transaction ON public.entry USING btree (transaction_id, leg);

CREATE INDEX hold_of_account ON public.hold USING btree (account_id, purpose, status, id);

CREATE INDEX hold_of_anybody ON public.hold USING btree (purpose, status, id);

CREATE INDEX hold_that_expires ON public.hold USING btree (expires_at) WHERE ((status = 'OPEN'::text) AND (expires_at IS NOT NULL));

CREATE INDEX journal_of_hold ON public.journal USING btree (hold_id) WHERE (hold_id IS NOT NULL);

CREATE UNIQUE INDEX journal_reversal ON public.journal USING btree (reverses_id, reversal_number) WHERE (reverses_id IS NOT NULL);

CREATE TRIGGER account_status_change_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.account_status_change FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER accounts_checked AFTER UPDATE ON public.account REFERENCING NEW TABLE AS new_accounts FOR EACH STATEMENT EXECUTE FUNCTION public.check_accounts();

CREATE TRIGGER entries_checked AFTER INSERT ON public.entry REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION public.check_entries();

CREATE TRIGGER entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.entry FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER event_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.event FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER hold_closes_once AFTER UPDATE ON public.hold REFERENCING OLD TABLE AS holds_before FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_reopening();

CREATE TRIGGER hold_stays BEFORE DELETE OR TRUNCATE ON public.hold FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER idempotency_key_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.idempotency_key FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER journal_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.journal FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER journal_checked AFTER INSERT ON public.journal REFERENCING NEW TABLE AS new_journal FOR EACH STATEMENT EXECUTE FUNCTION public.check_journal();

CREATE TRIGGER snapshot_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.snapshot FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER snapshots_checked AFTER INSERT ON public.snapshot REFERENCING NEW TABLE AS new_snapshots FOR EACH STATEMENT EXECUTE FUNCTION public.check_snapshots();

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.account(id);

ALTER TABLE ONLY public.account_status_change
    ADD CONSTRAINT account_status_change_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);

ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);

ALTER TABLE ONLY public.hold
    ADD CONSTRAINT hold_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);

ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_reverses_id_fkey FOREIGN KEY (reverses_id) REFERENCES public.journal(id);

ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);

GRANT USAGE ON SCHEMA public TO saldo_runtime;

GRANT SELECT ON TABLE public.account TO saldo_runtime;

GRANT INSERT(id) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(parent_id) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(purpose) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(stripe) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(code) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(owner) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(kind) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(currency) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(status),UPDATE(status) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(allow_negative) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(tracking) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(metadata) ON TABLE public.account TO saldo_runtime;

GRANT UPDATE(balance) ON TABLE public.account TO saldo_runtime;

GRANT UPDATE(sequence) ON TABLE public.account TO saldo_runtime;

GRANT UPDATE(posted_at) ON TABLE public.account TO saldo_runtime;

GRANT INSERT(stripes) ON TABLE public.account TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.account_status_change TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.entry TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.event TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.hold TO saldo_runtime;

GRANT UPDATE(captured) ON TABLE public.hold TO saldo_runtime;

GRANT UPDATE(status) ON TABLE public.hold TO saldo_runtime;

GRANT UPDATE(external_reference) ON TABLE public.hold TO saldo_runtime;

GRANT UPDATE(failure_reason) ON TABLE public.hold TO saldo_runtime;

GRANT UPDATE(closed_at) ON TABLE public.hold TO saldo_runtime;

GRANT SELECT,USAGE ON SEQUENCE public.hot_stamp TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.idempotency_key TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.journal TO saldo_runtime;

GRANT SELECT,INSERT,DELETE ON TABLE public.outbox TO saldo_runtime;

GRANT SELECT ON TABLE public.relay_lane TO saldo_runtime;

GRANT UPDATE("position") ON TABLE public.relay_lane TO saldo_runtime;

GRANT SELECT ON TABLE public.schema_version TO saldo_runtime;

GRANT SELECT,INSERT ON TABLE public.snapshot TO saldo_runtime;

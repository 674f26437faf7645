-- The tables of a common textbook design: one transaction per transfer, statement by statement, with an idempotency key,
-- ordered row locks, two entries and an outbox row, but no triggers and no check of whole transactions.
create schema textbook;
create table textbook.account (
  id bigint primary key,
  owner_id bigint not null,
  currency char(3) not null,
  balance bigint not null default 0,
  allow_negative boolean not null default false,
  check (allow_negative or balance >= 0)
);
create table textbook.journal_transaction (
  id uuid primary key,
  idempotency_key varchar(64) not null unique,
  type varchar(32) not null,
  created_at timestamptz not null default now()
);
create table textbook.ledger_entry (
  id bigserial primary key,
  transaction_id uuid not null references textbook.journal_transaction (id),
  account_id bigint not null references textbook.account (id),
  amount bigint not null,
  balance_after bigint not null,
  created_at timestamptz not null default now()
);
create index on textbook.ledger_entry (account_id, id);
create table textbook.outbox_event (
  id bigserial primary key,
  topic varchar(64) not null,
  payload jsonb not null,
  published boolean not null default false
);

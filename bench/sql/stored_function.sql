-- The peer of the posting engine: one stored function per transfer, which does the same work on the same tables, with the
-- same constraints and triggers: lock in order, look for the key, check, move, book, enter, tell. It is what a careful
-- developer writes who keeps everything in the database.
create function stored_transfer(
  caller_name text, new_key text, from_id uuid, to_id uuid, minor_units bigint, wanted_currency text
) returns uuid language plpgsql as $$
declare
  known idempotency_key;
  sender account;
  receiver account;
  transaction_id uuid := uuidv7();
  request jsonb := jsonb_build_object('fromAccountId', from_id, 'toAccountId', to_id, 'amount', minor_units);
  print bytea := sha256(convert_to(cast(request as text), 'UTF8'));
  booked_at timestamptz;
begin
  if from_id = to_id or minor_units <= 0 then
    raise exception 'invalid transfer';
  end if;
  perform from account where id in (from_id, to_id) order by id for no key update;
  select * into known from idempotency_key where caller = caller_name and key = new_key;
  if found then
    if known.fingerprint <> print then
      raise exception 'idempotency conflict';
    end if;
    return known.transaction_id;
  end if;
  select * into sender from account where id = from_id;
  select * into receiver from account where id = to_id;
  if sender.id is null or receiver.id is null then
    raise exception 'account not found';
  end if;
  if sender.status <> 'ACTIVE' or receiver.status <> 'ACTIVE' then
    raise exception 'account not active';
  end if;
  if sender.currency <> wanted_currency or receiver.currency <> wanted_currency then
    raise exception 'currency mismatch';
  end if;
  if not sender.allow_negative and sender.balance < minor_units then
    raise exception 'insufficient funds';
  end if;
  booked_at := greatest(clock_timestamp(), sender.posted_at, receiver.posted_at);
  insert into idempotency_key (caller, key, operation, fingerprint, fields, transaction_id)
  values (caller_name, new_key, 'transfer', print, request, transaction_id);
  with moved as (
    update account
    set
      balance = balance + case when id = to_id then minor_units else -minor_units end,
      sequence = sequence + 1, posted_at = booked_at
    where id in (from_id, to_id)
  ), booked as (
    insert into journal (id, type, caller, effective_at, posted_at)
    values (transaction_id, 'transfer', caller_name, booked_at, booked_at)
  ), told as (
    insert into outbox (transaction_id, account_ids, sequences)
    values (transaction_id, array[from_id, to_id], array[sender.sequence + 1, receiver.sequence + 1])
  )
  insert into entry (account_id, sequence, transaction_id, leg, currency, amount, balance_after, posted_at)
  values
    (
      from_id, sender.sequence + 1, transaction_id, 0, wanted_currency, -minor_units,
      sender.balance - minor_units, booked_at
    ),
    (
      to_id, receiver.sequence + 1, transaction_id, 1, wanted_currency, minor_units,
      receiver.balance + minor_units, booked_at
    );
  return transaction_id;
end
$$;

grant execute on function stored_transfer to saldo_runtime;

-- pgbench draws whole numbers; the wallets' ids are made from them.
create function wallet_id(number bigint) returns uuid language sql immutable as $$
  select cast('00000000-0000-7000-8000-' || lpad(to_hex(number), 12, '0') as uuid)
$$;
grant execute on function wallet_id to saldo_runtime;

-- name: outbox_has_events
-- Asked without a transaction: an idle relay takes no lock, uses no transaction id and writes nothing.
select exists(select from outbox where id > :floor) as has_events;

-- name: lock_lane
-- Who holds this row is the relay that delivers, until its transaction ends; others don't queue up behind it. It is a
-- statement of its own, so that the next one's snapshot is taken under the lock and shows all that the one before did.
select position from relay_lane where lane = 0 for update skip locked;

-- name: claim_events
-- The order of ids is right for each account, though ids are not in order of commit. An id is taken while the posting
-- holds the row locks of all its accounts, so two postings of one account take theirs in the order in which they moved
-- it. And PostgreSQL takes a transaction out of the running ones before it lets go of its row locks: a snapshot that
-- shows the second posting, which waited for those locks, shows the first. So whatever this statement sees of an
-- account has nothing of the same account missing before it. (Sessions must not cache the sequence behind the ids.)
--
-- Between accounts that isn't so. A posting that took its id early and commits late turns up below ids which were
-- claimed long before, so an id is no cursor: a reader that remembered the last one would never see it. What is left in
-- the outbox is what was not delivered, and the position given here is the cursor for everybody else. The floor is no
-- cursor either, see floor.py: nothing can turn up below it.
with claimed as (
  delete from outbox
  where id = any(array(select id from outbox where id > :floor order by id limit :batch_max))
  returning id, transaction_id, account_ids, sequences
), advanced as (
  update relay_lane
  set position = position + (select count(*) from claimed)
  where lane = 0 and exists (select from claimed)
), positioned as (
  insert into event (position, transaction_id, account_ids, sequences)
  select
    cast(:position as bigint) + row_number() over (order by id),
    transaction_id, account_ids, sequences
  from claimed
  returning position, account_ids, sequences
)
select position, account_ids, sequences, (select max(id) from claimed) as last_id
from positioned order by position;

-- name: outbox_writers
-- Claims of other relays are among them, which do no harm: they end soon.
select virtualtransaction
from pg_locks
where locktype = 'relation' and mode = 'RowExclusiveLock'
  and database = (select oid from pg_database where datname = current_database())
  and relation = cast('outbox' as regclass);

-- name: first_outbox_id
select id from outbox where id > :floor order by id limit 1;

-- name: discard_repeated_events
-- An event that is in the log, or twice in the outbox, is told once. Nothing in Saldo writes one; this keeps a row that
-- was written by hand from stopping all others. It runs only after `claim_events` has failed on such a row.
delete from outbox
where transaction_id in (select transaction_id from event)
  or id in (
    select id
    from (select id, row_number() over (partition by transaction_id order by id) as nth from outbox) as numbered
    where nth > 1
  )
returning transaction_id;

-- name: measure_backlog
-- Counts no further than a limit, so that measuring a large backlog doesn't add to it.
select
  (select count(*) from (select from outbox where id > :floor limit :count_max) as counted) as pending,
  coalesce(
    extract(epoch from clock_timestamp() - (select created_at from outbox where id > :floor order by id limit 1)), 0
  ) as oldest_seconds,
  pg_notification_queue_usage() as notification_queue_usage;

-- name: read_log
-- One row at least, so that the lane's position and the events come from one snapshot.
select lane.position as lane_position, next_ones.position, next_ones.account_ids, next_ones.sequences
from relay_lane as lane
left join (
  select position, account_ids, sequences
  from event where position > :after order by position limit :page
) as next_ones on true
where lane.lane = 0
order by next_ones.position;

-- name: open_or_find
-- Nothing comes back where another transaction opened the account after this statement began: the insert then finds the
-- code taken by a row that the statement can't see yet. A second run sees it.
with found as (
  select id from account where code = :code
), opened as (
  insert into account (id, code, kind, currency, allow_negative)
  select cast(:id as uuid), :code, :kind, :currency, true
  where not exists (select from found)
  on conflict (code) do nothing
  returning id
)
select id from found
union all
select id from opened;

-- name: accounts_by_id
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes
from account
where id = any(cast(:ids as uuid[])) and purpose = 'MAIN';

-- name: account_by_code
select
  id, parent_id, purpose, code, owner, kind, currency, status, allow_negative, tracking, metadata, created_at, stripes
from account
where code = :code;

-- name: accounts_ascending
-- Ids are in the order of their creation, so that a page stays where it is when accounts are opened later. One of the
-- two branches is never executed. A single one would have to be planned without knowing whether there is an owner, and
-- would pass over everybody else's accounts to find those of one.
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes
from (
  (
    select *
    from account
    where owner = :owner and purpose = 'MAIN' and id > :above and id < :below
      and (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
      and (cast(:currency as text) is null or currency = :currency)
      and (cast(:kind as text) is null or kind = :kind)
      and (cast(:status as text) is null or status = :status)
    order by id
    limit :limit
  )
  union all
  (
    select *
    from account
    where cast(:owner as text) is null and purpose = 'MAIN' and id > :above and id < :below
      and (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
      and (cast(:currency as text) is null or currency = :currency)
      and (cast(:kind as text) is null or kind = :kind)
      and (cast(:status as text) is null or status = :status)
    order by id
    limit :limit
  )
) as a
order by a.id
limit :limit;

-- name: accounts_descending
select
  a.id, a.parent_id, a.purpose, a.code, a.owner, a.kind, a.currency, a.status, a.allow_negative, a.tracking,
  a.metadata, a.created_at, a.stripes
from (
  (
    select *
    from account
    where owner = :owner and purpose = 'MAIN' and id > :above and id < :below
      and (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
      and (cast(:currency as text) is null or currency = :currency)
      and (cast(:kind as text) is null or kind = :kind)
      and (cast(:status as text) is null or status = :status)
    order by id desc
    limit :limit
  )
  union all
  (
    select *
    from account
    where cast(:owner as text) is null and purpose = 'MAIN' and id > :above and id < :below
      and (cast(:code_prefix as text) is null or starts_with(code, :code_prefix))
      and (cast(:currency as text) is null or currency = :currency)
      and (cast(:kind as text) is null or kind = :kind)
      and (cast(:status as text) is null or status = :status)
    order by id desc
    limit :limit
  )
) as a
order by a.id desc
limit :limit;

-- name: count_accounts
-- Reads no more main accounts than the bound, whatever the filter lets through.
select
  count(*) as rows_read,
  count(*) filter (
    where (cast(:code_prefix as text) is null or starts_with(counted.code, :code_prefix))
    and (cast(:currency as text) is null or counted.currency = :currency)
    and (cast(:kind as text) is null or counted.kind = :kind)
    and (cast(:status as text) is null or counted.status = :status)
  ) as matching
from (
  (select * from account where owner = :owner and purpose = 'MAIN' limit :bound)
  union all
  (select * from account where cast(:owner as text) is null and purpose = 'MAIN' limit :bound)
) as counted;

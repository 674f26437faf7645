-- name: held_money
-- What each stripe gave is looked up for no account but a striped one.
select
  h.id, h.account_id, h.purpose, h.currency, h.amount,
  coalesce(given.stripe_ids, '{}') as stripe_ids, coalesce(given.amounts, '{}') as amounts
from hold as h
join account as a on a.id = h.account_id
left join lateral (
  select
    array_agg(e.account_id order by stripe.stripe) as stripe_ids,
    array_agg(abs(e.amount) order by stripe.stripe) as amounts
  from journal as j
  join entry as e on e.transaction_id = j.id
  join account as stripe on stripe.id = e.account_id and stripe.purpose = 'STRIPE'
  where a.tracking = 'STRIPED' and j.hold_id = h.id and j.type = 'hold'
) as given on true
where h.id = any(cast(:ids as uuid[]));

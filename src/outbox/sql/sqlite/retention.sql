-- Old rows go in slices, in transactions that commit anyway. Each looks only at the oldest rows, so the
-- cost does not depend on how many are kept.

-- name: claim_natural_key
insert into settle_natural_keys (event_id, created_at) values ($1, $2) on conflict do nothing

-- name: expire_natural_keys
delete from settle_natural_keys where event_id in
  (select event_id from settle_natural_keys where created_at < $1 order by created_at limit $2)

-- The first row that has to stay: not passed by every share, or committed less than the time ago (or in the
-- future: then the clock has jumped). $1 is the time of the oldest to keep; only the oldest $2 are looked at.
-- name: first_event_to_keep
select coalesce(min(case when created_at >= $1 then seq end), max(seq) + 1, 0) as first_kept
from (select seq, created_at from settle_outbox
      where seq <= (select case when count(*) = 16 then min(position) else 0 end
                    from settle_shares where scope = 'outbox')
      order by seq limit $2)

-- name: delete_events_below
delete from settle_outbox where seq < $1

-- name: delete_progress
delete from settle_outbox_progress where id in
  (select id from (select id, at from settle_outbox_progress order by id limit $2) where at < $1)

-- Rows of the outbox go with their leaf. These small tables lose their oldest rows in slices, in transactions
-- that commit anyway.

-- name: claim_natural_key
insert into settle.natural_keys (event_id, created_at) values ($1, $2) on conflict do nothing

-- Of ticks and notes older than $1 at most $2, of natural keys older than $3 at most $4. Ticks that a share stands
-- on must stay, and the newest that is old enough: the ring goes by it.
-- name: expire
with old_ticks as (
  delete from settle.outbox_ticks where n in
    (select n from settle.outbox_ticks
     where n < (select n from settle.outbox_ticks
                where at < $1 and n <= (select min(tick) from settle.outbox_cursors) order by at desc limit 1)
     order by n limit $2)),
old_notes as (
  delete from settle.outbox_progress where id in
    (select id from settle.outbox_progress
     where at < $1 and id < (select min(coalesce(id, 0)) from settle.outbox_cursors) order by id limit $2))
delete from settle.natural_keys where event_id in
  (select event_id from settle.natural_keys where created_at < $3 order by created_at limit $4)

-- name: turn_ring
select emptied, opened from settle.turn_outbox_ring($1, $2)

-- Rows of the outbox go with their leaf. These small tables lose their oldest rows in slices, in transactions
-- that commit anyway.

-- name: claim_natural_key
insert into settle.natural_keys (event_id, created_at) values ($1, $2) on conflict do nothing

-- name: expire_natural_keys
delete from settle.natural_keys where event_id in
  (select event_id from settle.natural_keys where created_at < $1 order by created_at limit $2)

-- What a share stands on must stay, and the newest that is old enough: the ring goes by it.
-- name: delete_ticks
delete from settle.outbox_ticks where n in
  (select n from settle.outbox_ticks
   where n < (select n from settle.outbox_ticks
              where at < $1 and n <= (select min(tick) from settle.outbox_cursors) order by at desc limit 1)
   order by n limit $2)

-- name: delete_progress
delete from settle.outbox_progress where id in
  (select id from settle.outbox_progress
   where at < $1 and id < (select min(coalesce(id, 0)) from settle.outbox_cursors) order by id limit $2)

-- name: turn_ring
select emptied, opened from settle.turn_outbox_ring($1, $2)

-- Events that a window has passed and that are not out yet. Few, as a rule; each statement finds what it needs
-- by an index.

-- name: hold_event
insert into settle.outbox_held (seq, tick, lane, event_id, topic, event_type, aggregate_type, aggregate_id,
  content_type, headers, created_at, payload, blocks, attempts, next_at, last_error, status, place)
select o.seq, $2::bigint, o.lane, o.event_id, o.topic, o.event_type, o.aggregate_type, o.aggregate_id, o.content_type,
       o.headers, o.created_at, o.payload, $3::integer = 1, $4::integer, $5::bigint, $6::text, $7::text, $8::text
from settle.outbox o where o.seq = $1::bigint
on conflict (seq) do nothing

-- name: read_held_keys
select h.lane & 15 as share, h.topic, h.aggregate_id, max(h.next_at) as next_at, bool_or(h.status = 'FAILED')::integer as has_failed
from settle.outbox_held h where h.blocks group by 1, 2, 3

-- When the first event is due that waits for nothing but its time; $1 is the mask of shares.
-- name: read_free_due
select min(h.next_at) as next_at from settle.outbox_held h
where not h.blocks and h.status = 'WAITING' and ($1::integer >> (h.lane & 15)) & 1 = 1
  and not exists (select from settle.outbox_held b where b.blocks and b.lane = h.lane and b.aggregate_id = h.aggregate_id
                  and b.topic = h.topic and h.aggregate_id <> '')

-- The columns of read_window, attempts and place.
-- name: read_held_key
select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
       created_at, payload, null as deliver_at, attempts, place
from settle.outbox_held
where blocks and lane = $1 and aggregate_id = $2 and topic = $4 and status = 'WAITING' order by tick, seq limit $3

-- name: read_held_free
select h.seq, h.lane, h.event_id, h.topic, h.event_type, h.aggregate_type, h.aggregate_id, h.content_type,
       h.headers, h.created_at, h.payload, null as deliver_at, h.attempts, h.place
from settle.outbox_held h
where not h.blocks and h.status = 'WAITING' and h.next_at <= $1 and ($2::integer >> (h.lane & 15)) & 1 = 1
  and not exists (select from settle.outbox_held b where b.blocks and b.lane = h.lane and b.aggregate_id = h.aggregate_id
                  and b.topic = h.topic and h.aggregate_id <> '')
order by h.next_at, h.tick, h.seq limit $3

-- name: draw_places
update settle.identity set places_drawn = places_drawn + $1 returning places_drawn

-- name: give_place
update settle.outbox_held set place = $2 where seq = $1

-- name: take_place_back
update settle.outbox_held set place = null where seq = $1

-- name: remove_held
delete from settle.outbox_held where seq = $1

-- name: note_rejection
update settle.outbox_held
set attempts = attempts + 1, next_at = $2, last_error = $3, blocks = $4::integer = 1, status = $5,
    place = case when $6::integer = 1 then place end
where seq = $1

-- name: note_unwanted
update settle.outbox_held
set next_at = $2, last_error = $3, place = case when $4::integer = 1 then place end
where seq = $1

-- A clock was set back: in the shares of mask $3 no attempt waits for longer than until $2. One that is due at its own
-- time has had none.
-- name: pull_held
update settle.outbox_held set next_at = $1
where status = 'WAITING' and (attempts > 0 or last_error is not null) and next_at > $2 and ($3::integer >> (lane & 15)) & 1 = 1

-- name: read_failed
select event_id, topic, event_type, aggregate_id, attempts, last_error, created_at, next_at
from settle.outbox_held where status = 'FAILED' order by next_at, seq limit $1

-- Their attempts begin anew. Relays look for changes when they renew their lease.
-- name: requeue_failed
update settle.outbox_held set status = 'WAITING', attempts = 0, next_at = $1
where status = 'FAILED' and ($2::uuid is null or event_id = $2::uuid)

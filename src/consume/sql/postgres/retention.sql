-- Records go by batches, oldest first. Each look is at the oldest batches only, so the cost does not depend on
-- how many are kept.

-- Only SQLite needs numbers.
-- name: number_consumer
select $1::text

-- name: note_batch
insert into settle.processed_batches (consumer, processed_at, message_ids, logs) values ($1, $2, $3, $4)

-- Whoever gets it may expire records; it goes with the transaction.
-- name: try_to_expire
select pg_try_advisory_xact_lock(hashtextextended('settle.dedup_horizons ' || $1, 0))::integer as alone

-- Not the highest ever: after a restore the broker may be further back.
-- name: note_settled
insert into settle.settled_logs (consumer, log, position) values ($1, $2, $3)
on conflict (consumer, log) do update set position = excluded.position

-- The first batch that has to stay, and the oldest there is. It stays if it is too young (or from the future:
-- then the clock has jumped), or if the broker may deliver something of it again. Where the broker has no positions
-- they are empty, and age alone decides; in older rows they are numbers. $2 is the time of the oldest
-- to keep; only the oldest $3 are looked at.
-- name: first_batch_to_keep
select coalesce(min(case when processed_at >= $2 or open then id end), max(id) + 1, 0) as keep, coalesce(min(id), 0) as oldest
from (select b.id, b.processed_at,
             exists (select from jsonb_array_elements(b.logs::jsonb) l
                     left join settle.settled_logs s on s.consumer = $1 and s.log = l ->> 0
                     where case jsonb_typeof(l -> 1) when 'number' then lpad(to_hex((l ->> 1)::bigint), 16, '0')
                           else l ->> 1 end collate "C" > coalesce(s.position, '')) as open
      from settle.processed_batches b where b.consumer = $1 order by b.id limit $3) oldest

-- The same by age alone.
-- name: first_young_batch
select coalesce(min(case when processed_at >= $2 then id end), max(id) + 1, 0) as keep, coalesce(min(id), 0) as oldest
from (select id, processed_at from settle.processed_batches where consumer = $1 order by id limit $3) oldest

-- name: raise_horizons
with gone as (
  select l ->> 0 as log, s ->> 0 as source, (o ->> 0)::integer as lane, (o ->> 1) collate "C" as place
  from settle.processed_batches b, jsonb_array_elements(b.logs::jsonb) l, jsonb_array_elements(l -> 2) s,
       jsonb_array_elements(s -> 1) o
  where b.consumer = $1 and b.id < $2)
insert into settle.dedup_horizons as h (consumer, lane, log, source, place)
select $1, lane, log, source, max(place) from gone group by log, source, lane
union all
select $1, -1, log, source, max(place) from gone group by log, source
on conflict (consumer, lane, log, source) do update set place = greatest(h.place, excluded.place)

-- name: delete_records_below
delete from settle.processed_events where consumer = $1 and message_id in
  (select jsonb_array_elements_text(b.message_ids::jsonb) from settle.processed_batches b
   where b.consumer = $1 and b.id < $2)

-- name: delete_batches_below
delete from settle.processed_batches where consumer = $1 and id < $2

-- name: read_highest_horizons
select log, source, place from settle.dedup_horizons where consumer = $1 and lane = -1

-- name: read_horizon
select place from settle.dedup_horizons where consumer = $1 and lane = $2 and log = $3 and source = $4

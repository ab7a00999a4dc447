-- Records go by batches, oldest first. Each look is at the oldest batches only, so the cost does not depend on
-- how many are kept.

-- Before its first note. A note of somebody without a number fails.
-- name: number_consumer
insert into settle_consumers (consumer) values ($1) on conflict do nothing

-- name: note_batch
insert into settle_processed_batches (consumer, id, processed_at, message_ids, logs, keys, places)
select c.number,
       coalesce((select b.id from settle_processed_batches b
                 where b.id > (c.number << 40) and b.id < ((c.number + 1) << 40) order by b.id desc limit 1),
                c.number << 40) + 1, $2, '[]', '[]', $3, $4
from (select 1) left join settle_consumers c on c.consumer = $1

-- There is one writer, and who gets here is it.
-- name: try_to_expire
select 1 as alone where $1 is not null

-- Not the highest ever: after a restore the broker may be further back.
-- name: note_settled
insert into settle_settled_logs (consumer, log, position) values ($1, $2, $3)
on conflict (consumer, log) do update set position = excluded.position

-- The first batch that has to stay, and the oldest there is. It stays if it is too young (or from the future:
-- then the clock has jumped), or if the broker may deliver something of it again. Where the broker has no positions
-- they are empty, and age alone decides. $2 is the time of the oldest
-- to keep; only the oldest $3 are looked at.
-- name: first_batch_to_keep
select coalesce(min(case when processed_at >= $2 or open then id end), max(id) + 1, 0) as keep, coalesce(min(id), 0) as oldest
from (select b.id, b.processed_at,
             exists (select 1 from json_each(b.logs) l
                     left join settle_settled_logs s
                       on s.consumer = $1 and s.log = json_extract(l.value, '$[0]')
                     where printf('%016x', json_extract(l.value, '$[1]')) > coalesce(s.position, ''))
             or exists (select 1 from settle_places(b.places) p
                        left join settle_settled_logs s on s.consumer = $1 and s.log = p.log
                        where p.position > coalesce(s.position, '')) as open
      from settle_consumers c
      join settle_processed_batches b on b.id > (c.number << 40) and b.id < ((c.number + 1) << 40)
      where c.consumer = $1 order by b.id limit $3)

-- The same by age alone.
-- name: first_young_batch
select coalesce(min(case when processed_at >= $2 then id end), max(id) + 1, 0) as keep, coalesce(min(id), 0) as oldest
from (select b.id, b.processed_at
      from settle_consumers c
      join settle_processed_batches b on b.id > (c.number << 40) and b.id < ((c.number + 1) << 40)
      where c.consumer = $1 order by b.id limit $3)

-- name: raise_horizons
with gone(log, source, lane, place) as (
  select json_extract(l.value, '$[0]'), json_extract(s.value, '$[0]'), json_extract(o.value, '$[0]'),
         json_extract(o.value, '$[1]')
  from settle_processed_batches b, json_each(b.logs) l, json_each(l.value, '$[2]') s, json_each(s.value, '$[1]') o
  where b.id > (select number << 40 from settle_consumers where consumer = $1) and b.id < $2
  union all
  select p.log, p.source, p.lane, p.place
  from settle_processed_batches b, settle_places(b.places) p
  where b.id > (select number << 40 from settle_consumers where consumer = $1) and b.id < $2)
insert into settle_dedup_horizons (consumer, lane, log, source, place)
select $1, lane, log, source, max(place) from gone group by log, source, lane
union all
select $1, -1, log, source, max(place) from gone group by log, source
on conflict (consumer, lane, log, source) do update set place = max(place, excluded.place)

-- name: delete_records_below
delete from settle_processed_events where consumer = $1 and message_id in
  (select k.value from settle_processed_batches b, settle_keys(b.keys) k
   where b.id > (select number << 40 from settle_consumers where consumer = $1) and b.id < $2
   union all
   select m.value from settle_processed_batches b, json_each(b.message_ids) m
   where b.id > (select number << 40 from settle_consumers where consumer = $1) and b.id < $2)

-- name: delete_batches_below
delete from settle_processed_batches
where id > (select number << 40 from settle_consumers where consumer = $1) and id < $2

-- name: read_highest_horizons
select log, source, place from settle_dedup_horizons where consumer = $1 and lane = -1

-- name: read_horizon
select place from settle_dedup_horizons where consumer = $1 and lane = $2 and log = $3 and source = $4

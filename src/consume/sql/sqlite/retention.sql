-- Records go by batches, oldest first, per partition of the broker. Each look is at the oldest batches only,
-- so the cost does not depend on how many are kept.

-- name: note_batch
insert into settle_processed_batches (consumer, log, position, processed_at, message_ids, origins)
values ($1, $2, $3, $4, $5, $6)

-- The first batch that has to stay: too young (or from the future: then the clock has jumped), or the broker
-- may deliver something of it again. $3 is the time of the oldest to keep, $4 the position up to which the
-- broker is done; only the oldest $5 are looked at.
-- The second column is the oldest there is.
-- name: first_batch_to_keep
select coalesce(min(case when processed_at >= $3 or position > $4 then id end), max(id) + 1, 0),
       coalesce(min(id), 0)
from (select id, processed_at, position from settle_processed_batches
      where consumer = $1 and log = $2 order by id limit $5)

-- name: raise_horizons
with gone(source, lane, sequence) as (
  select json_extract(o.value, '$[0]'), json_extract(o.value, '$[1]'), json_extract(o.value, '$[2]')
  from settle_processed_batches b, json_each(b.origins) o
  where b.consumer = $1 and b.log = $2 and b.id < $3)
insert into settle_dedup_horizons (consumer, lane, log, source, sequence)
select $1, lane, $2, source, max(sequence) from gone group by source, lane
union all
select $1, -1, $2, source, max(sequence) from gone group by source
on conflict (consumer, lane, log, source) do update set sequence = max(sequence, excluded.sequence)

-- name: delete_records_below
delete from settle_processed_events where consumer = $1 and message_id in
  (select m.value from settle_processed_batches b, json_each(b.message_ids) m
   where b.consumer = $1 and b.log = $2 and b.id < $3)

-- name: delete_batches_below
delete from settle_processed_batches where consumer = $1 and log = $2 and id < $3

-- name: read_highest_horizons
select log, source, sequence from settle_dedup_horizons where consumer = $1 and lane = -1

-- name: read_horizon
select sequence from settle_dedup_horizons where consumer = $1 and lane = $2 and log = $3 and source = $4

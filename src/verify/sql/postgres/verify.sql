-- name: note_effect
insert into settle.effects (kind, consumer, topic, key, subject, event_id, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- Large tables are read in pages, each from where the last one ended: the place is in the last columns. The planner is told
-- what is always right for a page, the index that has its order.
-- name: plan_for_pages
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true)

-- name: read_effects
select consumer, topic, key, subject, event_id, id from settle.effects where kind = $1 and id > $2 order by id limit $3

-- name: read_outbox_state
select event_id, topic, status, id from settle.outbox_events where id > $1 order by id limit $2

-- Without replays of dead letters, which are no events of their own: all consumers but one skip them. Such a one names
-- its letter, as dead_letter/replayed.cpp reads it.
-- name: read_outbox_events
select e.event_id, e.topic, e.event_type, e.aggregate_id, e.status, e.id from settle.outbox_events e
where e.id > $1 and not exists (
  select from settle.dlq_events d
  where d.id = case when e.headers like '%"settlereplayfor":"%'
                    then substring(e.headers from '"settlereplayof":"(\d{1,18})\.')::bigint end
    and d.topic = e.topic
    and (lower(d.message_id) = e.event_id::text or d.message_id !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
order by e.id limit $2

-- Where events stood when they were first delivered, of the numbers in $1. Horizons go by ticks here, the first one that shows
-- the event, and by numbers within it. If that is the oldest tick of all, others before it have gone: 0, which is before every
-- horizon.
-- name: read_places
select o.seq, o.lane,
       coalesce(nullif(settle.first_tick_of(o.xid, o.seq), (select min(n) from settle.outbox_ticks)), 0) as tick
from json_array_elements_text($1::json) wanted(seq) join settle.outbox o on o.seq = wanted.seq::bigint
union all
select h.seq, h.lane, h.tick
from json_array_elements_text($1::json) wanted(seq) join settle.outbox_held h on h.seq = wanted.seq::bigint
where not exists (select from settle.outbox o where o.seq = h.seq)

-- name: read_processed
select topic, event_type, consumer, message_id from settle.processed_events
where (consumer, message_id) > ($1, $2) order by consumer, message_id limit $3

-- name: read_horizons
select consumer, log, lane, place from settle.dedup_horizons where lane >= 0

-- Messages that wait for another try.
-- name: read_parked
select consumer, message_id, topic from settle.parked_messages

-- Given up, and not replayed since.
-- name: read_dead_letters
select consumer, message_id, case when status = 'REPLAYED' then 0 else 1 end as given_up, topic from settle.dlq_events

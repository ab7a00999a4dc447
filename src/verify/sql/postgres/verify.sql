-- name: note_effect
insert into settle.effects (kind, consumer, topic, key, subject, event_id, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- name: read_effects
select consumer, topic, key, subject, event_id from settle.effects where kind = $1 order by id

-- name: read_outbox_state
select event_id, status from settle.outbox_events

-- Horizons go by ticks here, the first one that shows the event, and by numbers within it.
-- Without replays of dead letters, which are no events of their own: all consumers but one skip them. Such a one names
-- its letter, as dead_letter/replayed.cpp reads it.
-- name: read_outbox_events
select e.event_id, e.topic, e.event_type, e.aggregate_id, e.status,
       coalesce((select min(t.n) from settle.outbox_ticks t, settle.outbox o
                 where o.seq = e.id and pg_visible_in_snapshot(o.xid, t.snap)), 0), e.id,
       settle.lane(case when e.aggregate_id = '' then e.event_id::text else e.aggregate_id end)
from settle.outbox_events e
where not exists (
  select from settle.dlq_events d
  where d.id = case when e.headers like '%"settlereplayfor":"%'
                    then substring(e.headers from '"settlereplayof":"(\d{1,18})\.')::bigint end
    and d.topic = e.topic
    and (lower(d.message_id) = e.event_id::text or d.message_id !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))

-- name: read_processed
select consumer, message_id, topic, event_type from settle.processed_events

-- name: read_horizons
select consumer, log, lane, place from settle.dedup_horizons where lane >= 0

-- Messages that wait for another try.
-- name: read_parked
select consumer, message_id from settle.parked_messages

-- Given up, and not replayed since.
-- name: read_dead_letters
select consumer, message_id, case when status = 'REPLAYED' then 0 else 1 end from settle.dlq_events

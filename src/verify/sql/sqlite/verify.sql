-- name: note_effect
insert into settle_effects (kind, consumer, topic, key, subject, event_id, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- Large tables are read in pages, each from where the last one ended: the place is in the last columns. Settings of the
-- planner for that; there are none here.
-- name: plan_for_pages
select 1

-- name: read_effects
select consumer, topic, key, subject, event_id, id from settle_effects where kind = $1 and id > $2 order by id limit $3

-- name: read_outbox_state
select event_id, topic, status, id from settle_outbox_events where id > $1 order by id limit $2

-- Without replays of dead letters, which are no events of their own: all consumers but one skip them. Such a one names
-- its letter, as dead_letter/replayed.cpp reads it.
-- name: read_outbox_events
select o.event_id, o.topic, o.event_type, o.aggregate_id, o.status, o.id from settle_outbox_events o
where o.id > $1 and not exists (
  select 1 from settle_dlq_events d
  where d.id = case when o.headers like '%"settlereplayfor":"%'
                    then cast(json_extract(o.headers, '$.settlereplayof') as integer) end
    and d.topic = o.topic
    and (lower(d.message_id) = o.event_id or length(d.message_id) <> 36
         or replace(d.message_id, '-', '') glob '*[^0-9a-fA-F]*'))
order by o.id limit $2

-- Where events stood when they were first delivered, of the numbers in $1. There are no ticks here.
-- name: read_places
select o.seq, o.lane, null as tick from json_each($1) wanted join settle_outbox o on o.seq = wanted.value
union all
select h.seq, h.lane, null from json_each($1) wanted join settle_outbox_held h on h.seq = wanted.value
where not exists (select 1 from settle_outbox o where o.seq = h.seq)

-- name: read_processed
select topic, event_type, consumer, message_id from settle_processed_events
where (consumer, message_id) > ($1, $2) order by consumer, message_id limit $3

-- name: read_horizons
select consumer, log, lane, place from settle_dedup_horizons where lane >= 0

-- Messages that wait for another try.
-- name: read_parked
select consumer, message_id, topic from settle_parked_messages

-- Given up, and not replayed since.
-- name: read_dead_letters
select consumer, message_id, case when status = 'REPLAYED' then 0 else 1 end as given_up, topic from settle_dlq_events

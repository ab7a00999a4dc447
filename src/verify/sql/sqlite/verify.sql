-- name: note_effect
insert into settle_effects (kind, consumer, topic, key, subject, event_id, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- name: read_effects
select consumer, topic, key, subject, event_id from settle_effects where kind = $1 order by id

-- name: read_outbox_state
select event_id, status from settle_outbox_events

-- name: read_broker_groups
select g.name, t.name from broker_groups g join broker_topics t on t.topic = g.topic

-- One row per message and subscribed group; acknowledged or not. A message without a group has one row.
-- name: read_broker_messages
select m.event_id, t.name, coalesce(g.name, ''), coalesce(m.position <= s.position, 0)
from broker_messages m
join broker_topics t on t.topic = m.topic
left join broker_groups g on g.topic = m.topic
left join settle_shares s on s.scope = 'group/' || g.topic || '/' || g.name and s.share = m.partition

-- Without replays of dead letters, which are no events of their own: all consumers but one skip them. Such a one names
-- its letter, as dead_letter/replayed.cpp reads it.
-- name: read_outbox_events
select o.event_id, o.topic, o.event_type, o.aggregate_id,
       case when h.status = 'FAILED' then 'FAILED'
            when h.seq is null and o.seq <= s.position then 'PUBLISHED' else 'PENDING' end,
       null, o.seq, o.lane
from settle_outbox o
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
left join settle_outbox_held h on h.seq = o.seq
where not exists (
  select 1 from settle_dlq_events d
  where d.id = case when o.headers like '%"settlereplayfor":"%'
                    then cast(json_extract(o.headers, '$.settlereplayof') as integer) end
    and d.topic = o.topic
    and (lower(d.message_id) = o.event_id or length(d.message_id) <> 36
         or replace(d.message_id, '-', '') glob '*[^0-9a-fA-F]*'))
union all
select h.event_id, h.topic, h.event_type, h.aggregate_id, case h.status when 'FAILED' then 'FAILED' else 'PENDING' end,
       null, h.seq, h.lane
from settle_outbox_held h
where not exists (
  select 1 from settle_dlq_events d
  where d.id = case when h.headers like '%"settlereplayfor":"%'
                    then cast(json_extract(h.headers, '$.settlereplayof') as integer) end
    and d.topic = h.topic
    and (lower(d.message_id) = h.event_id or length(d.message_id) <> 36
         or replace(d.message_id, '-', '') glob '*[^0-9a-fA-F]*'))
  and not exists (select 1 from settle_outbox o where o.seq = h.seq)

-- name: read_processed
select consumer, message_id, topic, event_type from settle_processed_events

-- name: read_horizons
select consumer, log, lane, place from settle_dedup_horizons where lane >= 0

-- Messages that wait for another try.
-- name: read_parked
select consumer, message_id from settle_parked_messages

-- Given up, and not replayed since.
-- name: read_dead_letters
select consumer, message_id, case when status = 'REPLAYED' then 0 else 1 end from settle_dlq_events

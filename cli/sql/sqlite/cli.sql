-- What the command line reads. None of these touches a payload, except read_message, one at a time.

-- Tells a service's database from a broker's file before anything else is asked of it.
-- name: find_tables
select coalesce(max(name = 'settle_outbox'), 0), coalesce(max(name = 'broker_topics'), 0)
from sqlite_master where type = 'table'

-- A file belongs to no cluster.
-- name: read_cluster
select null, null

-- name: read_database_id
select database_id from settle_identity

-- Everything up to here was committed; numbers are never reused, and only a restore leaves some out.
-- name: read_outbox_total
select coalesce((select seq from sqlite_sequence where name = 'settle_outbox'), 0), numbers_skipped
from settle_identity

-- name: read_blocked_shares
select share, failures, coalesce(last_error, '') from settle_shares
where scope = 'outbox' and failures > 0 order by share

-- name: count_relays
select (select count(*) from settle_members where scope = 'outbox' and lease_until > $1),
       (select count(*) from settle_shares where scope = 'outbox' and owner is not null and lease_until > $1)

-- Parked messages and dead letters by consumer; few, as a rule.
-- name: count_waiting
select consumer, sum(parked), sum(dead) from (
  select consumer, count(*) as parked, 0 as dead from settle_parked_messages group by consumer
  union all
  select consumer, 0, count(*) from settle_dlq_events where status in ('NEW', 'REPLAYING', 'DISCARD_REQUESTED')
  group by consumer) found
group by consumer order by consumer

-- The consumers' names come one by one from the primary key; a `distinct` would visit every record twice.
-- name: count_dedup_records
with recursive consumers(name) as (
  select min(consumer) from settle_processed_events
  union all
  select (select min(consumer) from settle_processed_events where consumer > consumers.name)
  from consumers where consumers.name is not null)
select name, (select count(*) from settle_processed_events where consumer = consumers.name)
from consumers where name is not null

-- name: read_topics
select t.topic, t.name, t.partitions, (select count(*) from broker_messages m where m.topic = t.topic)
from broker_topics t order by t.name

-- name: read_topic_names
select name from broker_topics order by name

-- A topic's messages lie in the index by partition: the first or last few of each are merged by the caller.
-- name: first_positions
select position from broker_messages
where topic = $1 and partition = $2 and position > $3 order by position limit $4

-- name: last_positions
select position from broker_messages
where topic = $1 and partition = $2 order by position desc limit $3

-- name: read_message
select event_id, source, event_type, key, subject, content_type, time, extensions, payload
from broker_messages where position = $1

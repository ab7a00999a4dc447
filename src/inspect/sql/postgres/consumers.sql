-- Consumers, by what they leave in the service's database.

-- Parked messages and dead letters by consumer; few, as a rule.
-- name: count_parked_and_dead
select consumer, sum(parked)::bigint as parked, sum(dead)::bigint as dead from (
  select consumer, count(*) as parked, 0 as dead from settle.parked_messages group by consumer
  union all
  select consumer, 0, count(*) from settle.dlq_events where status in ('NEW', 'REPLAYING', 'DISCARD_REQUESTED')
  group by consumer) found
group by consumer order by consumer

-- The consumers' names come one by one from the primary key; a `distinct` would visit every record twice.
-- name: count_dedup_records
with recursive consumers(name) as (
  select min(consumer) from settle.processed_events
  union all
  select (select min(consumer) from settle.processed_events where consumer > consumers.name)
  from consumers where consumers.name is not null)
select name as consumer, (select count(*) from settle.processed_events where consumer = consumers.name) as records
from consumers where name is not null

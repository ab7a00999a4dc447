-- What the command line reads of a service's database on a server. None of these touches a payload.

-- Asked of the catalogue, because a role without rights on the schema may ask too. A broker is always a file.
-- name: find_tables
select count(*), 0
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relname = 'outbox'

-- name: read_cluster
select system_identifier, timeline from settle.identity

-- name: read_database_id
select database_id from settle.identity

-- Epochs of claims that were drawn after a backup was made must not come again after it was restored either.
-- name: rebase_outbox
select settle.rebase_outbox(), setval('settle.claim_epochs', greatest(nextval('settle.claim_epochs'),
  (extract(epoch from clock_timestamp() + interval '30 days') * 1000000)::bigint))

-- Everything committed so far has a number up to here. How many of the numbers were used nobody knows: a
-- transaction that rolled back has drawn some, too.
-- name: read_outbox_total
select pg_sequence_last_value('settle.outbox_seq'::regclass), null::bigint

-- name: read_blocked_shares
select share, failures, coalesce(last_error, '') from settle.shares
where scope = 'outbox' and failures > 0 order by share

-- name: count_relays
select (select count(*) from settle.members where scope = 'outbox' and lease_until > $1),
       (select count(*) from settle.shares where scope = 'outbox' and owner is not null and lease_until > $1)

-- Parked messages and dead letters by consumer; few, as a rule.
-- name: count_waiting
select consumer, sum(parked)::bigint, sum(dead)::bigint from (
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
select name, (select count(*) from settle.processed_events where consumer = consumers.name)
from consumers where name is not null

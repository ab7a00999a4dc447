-- What the command line reads of a service's database on a server. None of these touches a payload.

-- Asked of the catalogue, because a role without rights on the schema may ask too. A broker is always a file.
-- name: find_tables
select count(*), 0
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relname = 'outbox'

-- Leaves come and go faster than their statistics, so the planner is told what is always right here: indexes.
-- name: plan_for_reading
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)

-- name: read_cluster
select system_identifier, timeline from settle.identity

-- name: read_database_id
select database_id from settle.identity

-- name: rebase_outbox
select settle.rebase_outbox()

-- Everything committed so far has a number up to here. How many of the numbers were used nobody knows: a
-- transaction that rolled back has drawn some, too.
-- name: read_outbox_total
select last_value, null::bigint from settle.outbox_seq

-- Per share: how many events wait, and since when. A share has done what its tick shows, and of what the next one
-- shows everything up to a number. So only what the slowest share's tick does not show is looked at, by the
-- indexes on xid: what was under way then or came later. A number would not do, for a late commit has a low one;
-- and the index on numbers must not be tempting, hence the + 0. $1: only events up to this sequence number.
-- name: read_outbox_waiting
with cursors as materialized (
  select c.share, c.tick, c.position,
         (select t.snap from settle.outbox_ticks t where t.n = c.tick) as done,
         (select t.snap from settle.outbox_ticks t where t.n = c.upto and c.upto > 0) as upto
  from settle.outbox_cursors c),
slowest as materialized (select done as snap from cursors order by tick limit 1)
select c.share, count(*), min(o.created_at)
from (select lane, seq, xid, created_at from settle.outbox
      where xid >= pg_snapshot_xmax((select snap from slowest))
      union all
      select lane, seq, xid, created_at from settle.outbox
      where xid = any (array(select pg_snapshot_xip((select snap from slowest))))) o
join cursors c on c.share = (o.lane & 15)
where o.seq + 0 <= $1::bigint and not pg_visible_in_snapshot(o.xid, c.done)
  and (c.upto is null or o.seq > c.position or not pg_visible_in_snapshot(o.xid, c.upto))
group by c.share

-- name: read_blocked_shares
select share, failures, coalesce(last_error, '') from settle.shares
where scope = 'outbox' and failures > 0 order by share

-- name: count_relays
select (select count(*) from settle.members where scope = 'outbox' and lease_until > $1),
       (select count(*) from settle.shares where scope = 'outbox' and owner is not null and lease_until > $1)

-- The consumers' names come one by one from the primary key; a `distinct` would visit every record twice.
-- name: count_dedup_records
with recursive consumers(name) as (
  select min(consumer) from settle.processed_events
  union all
  select (select min(consumer) from settle.processed_events where consumer > consumers.name)
  from consumers where consumers.name is not null)
select name, (select count(*) from settle.processed_events where consumer = consumers.name)
from consumers where name is not null

-- name: outbox_cluster
select system_identifier, timeline from settle.identity

-- name: live_relays
select count(*) as alive from settle.members where scope = 'outbox' and lease_until > $1

-- What waits, per share, among the newest $1 rows and the first $1 behind the slowest share: never more is
-- looked at, however long the queue is. The key that most of them have, and how many those are.
-- name: waiting_events
with cursors as materialized (
  select c.share, c.position, done.snap, done.seq_high, upto.snap as upto_snap
  from settle.outbox_cursors c
  join settle.outbox_ticks done on done.n = c.tick
  left join settle.outbox_ticks upto on upto.n = c.upto and c.upto > 0),
looked_at as (
  (select seq, xid, lane, aggregate_id, created_at from settle.outbox order by seq desc limit $1)
  union
  (select seq, xid, lane, aggregate_id, created_at from settle.outbox
   where seq > (select min(seq_high) from cursors) order by seq limit $1)),
waiting as (
  select c.share, o.aggregate_id, count(*) as events, min(o.created_at) as oldest
  from looked_at o join cursors c on c.share = (o.lane & 15)
  where not pg_visible_in_snapshot(o.xid, c.snap)
    and not coalesce(o.seq <= c.position and pg_visible_in_snapshot(o.xid, c.upto_snap), false)
  group by 1, 2)
select share, sum(events)::bigint as events, min(oldest) as oldest,
       (array_agg(aggregate_id order by events desc))[1] as key, max(events)::bigint as events_of_key
from waiting group by 1 order by 2 desc

-- name: failing_shares
select share, failures, coalesce(last_error, '') as last_error from settle.shares
where scope = 'outbox' and failures > 0 order by failures desc, share

-- The one that failed first, how many have, and what gives all of them new attempts.
-- name: failed_events
select h.topic, h.event_type, h.aggregate_id, h.attempts, coalesce(h.last_error, '') as last_error,
       h.next_at as failed_at, count(*) over () as events,
       'update settle.outbox_held set status = ''WAITING'', attempts = 0, next_at = 0 where status = ''FAILED'';' as fix
from settle.outbox_held h where h.status = 'FAILED' order by h.next_at, h.seq limit 1

-- The leaf that is written to, the one that comes next, and since when each has been in use.
-- name: ring_state
select cur.slot, cur.opened_at, nxt.slot as next_slot, nxt.opened_at as next_opened_at,
       exists (select from settle.outbox o where o.slot = nxt.slot) as next_is_full
from (select (pg_sequence_last_value('settle.outbox_ring'::regclass) & 7)::smallint as slot) now
join settle.outbox_leaves cur on cur.slot = now.slot
join settle.outbox_leaves nxt on nxt.slot = ((now.slot + 1) & 7)::smallint

-- Whoever holds any lock on leaf $1 keeps it from being emptied. Relays and vacuum are there for moments: only
-- what is older than $2 microseconds counts.
-- name: leaf_pins
select l.pid, coalesce(a.usename, '') as user, coalesce(a.application_name, '') as program, coalesce(a.state, '') as state,
       coalesce((extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000000)::bigint, 0) as age,
       p.gid, quote_literal(p.gid) as quoted_gid
from pg_catalog.pg_locks l
join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
left join pg_catalog.pg_stat_activity a on a.pid = l.pid
left join pg_catalog.pg_locks x on l.pid is null and x.pid is null and x.locktype = 'transactionid'
     and x.virtualtransaction = l.virtualtransaction
left join pg_catalog.pg_prepared_xacts p on p.transaction = x.transactionid
where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
  and l.relation = to_regclass('settle.outbox_' || $1::integer)
  and (a.backend_type = 'client backend' or l.pid is null)
  and coalesce(a.xact_start, p.prepared) < clock_timestamp() - $2::float8 * interval '1 microsecond'
group by 1, 2, 3, 4, 5, 6, 7 order by 5 desc limit 10

-- Shares that have not done what a tick from before $1 shows.
-- name: shares_behind
select string_agg(c.share::text, ', ' order by c.share) as shares from settle.outbox_cursors c
where c.tick < (select max(t.n) from settle.outbox_ticks t where t.at < $1)

-- The small tables that relays write to and clean up after themselves. $1: only larger ones.
-- name: large_logs
select c.oid::regclass::text as relation, pg_table_size(c.oid) as bytes, coalesce(s.n_live_tup, 0) as live,
       coalesce(s.n_dead_tup, 0) as dead
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
where n.nspname = 'settle' and c.relname in ('outbox_ticks', 'outbox_progress', 'shares', 'members')
  and pg_table_size(c.oid) > $1
order by 2 desc

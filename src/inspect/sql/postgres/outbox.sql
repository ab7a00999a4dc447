-- How much waits in the outbox, and who works on it. No payload is touched.

-- Leaves come and go faster than their statistics, so the planner is told what is always right here: indexes.
-- name: plan_for_counting
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)

-- Per share: how many events wait, and since when. A share has done what its tick shows, and of what the next one
-- shows everything up to a number. So only what the slowest share's tick does not show is looked at, by the
-- indexes on xid: what was under way then or came later. A number would not do, for a late commit has a low one;
-- and the index on numbers must not be tempting, hence the + 0. $1: only events up to this sequence number.
-- name: read_waiting
with cursors as materialized (
  select c.share, c.tick, c.position,
         (select t.snap from settle.outbox_ticks t where t.n = c.tick) as done,
         (select t.snap from settle.outbox_ticks t where t.n = c.upto and c.upto > 0) as upto
  from settle.outbox_cursors c),
slowest as materialized (select done as snap from cursors order by tick limit 1)
select c.share, count(*) as waiting, min(o.created_at) as oldest
from (select lane, seq, xid, created_at from settle.outbox
      where xid >= pg_snapshot_xmax((select snap from slowest))
      union all
      select lane, seq, xid, created_at from settle.outbox
      where xid = any (array(select pg_snapshot_xip((select snap from slowest))))) o
join cursors c on c.share = (o.lane & 15)
where o.seq + 0 <= $1::bigint and not pg_visible_in_snapshot(o.xid, c.done)
  and (c.upto is null or o.seq > c.position or not pg_visible_in_snapshot(o.xid, c.upto))
group by c.share

-- Up to number $1, at time $2: how many wait to be tried again, how many for their time, how many were given up; and
-- since when the first ones wait.
-- name: count_held
select count(*) filter (where status = 'WAITING' and (blocks or attempts > 0 or next_at <= $2)) as waiting,
       count(*) filter (where status = 'WAITING' and not blocks and attempts = 0 and next_at > $2) as delayed,
       count(*) filter (where status = 'FAILED') as failed,
       min(created_at) filter (where status = 'WAITING' and (blocks or attempts > 0 or next_at <= $2)) as oldest
from settle.outbox_held where seq <= $1

-- Everything committed so far has a number up to here. How many of the numbers were used nobody knows: a
-- transaction that rolled back has drawn some, too.
-- name: read_outbox_total
select pg_sequence_last_value('settle.outbox_seq'::regclass) as highest, null::bigint as skipped

-- Shares that have failed since they last moved.
-- name: read_failing_shares
select share, failures, coalesce(last_error, '') as last_error from settle.shares
where scope = 'outbox' and failures > 0 order by share

-- name: count_relays
select (select count(*) from settle.members where scope = 'outbox' and lease_until > $1) as alive,
       (select count(*) from settle.shares where scope = 'outbox' and owner is not null and lease_until > $1) as shares_owned

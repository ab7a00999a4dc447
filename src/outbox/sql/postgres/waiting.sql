-- How much waits in the outbox. Neither touches a payload.

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

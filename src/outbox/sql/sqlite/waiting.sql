-- How much waits in the outbox. Neither touches a payload.

-- Settings of the planner for this transaction; there are none here.
-- name: plan_for_counting
select 1

-- Per share: how many events wait, and since when. Begins at the position of the slowest share, so the
-- published ones before it are not visited. $1: only events up to this sequence number.
-- name: read_waiting
select o.lane & 15, count(*), min(o.created_at)
from settle_outbox o
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
where o.seq > coalesce((select min(position) from settle_shares where scope = 'outbox'), 0)
  and o.seq <= $1 and o.seq > coalesce(s.position, 0)
group by 1

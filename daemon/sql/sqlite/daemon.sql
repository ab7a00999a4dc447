-- What /metrics reads. None of these touches a payload. $1 where a list is read: the most rows.

-- Settings of the planner for this transaction; there are none here.
-- name: plan_for_reading
select 1

-- Begins at the position of the slowest share, so published events are not visited.
-- name: read_pending
select count(*), min(o.created_at)
from settle_outbox o
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
where o.seq > coalesce((select min(position) from settle_shares where scope = 'outbox'), 0)
  and o.seq > coalesce(s.position, 0)

-- name: count_relays
select count(*) from settle_members where scope = 'outbox' and lease_until > $1

-- name: count_messages
select t.name, (select count(*) from broker_messages m where m.topic = t.topic)
from broker_topics t order by t.topic limit $1

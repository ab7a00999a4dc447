-- What /metrics reads. None of these touches a payload. $1 where a list is read: the most rows.

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

-- A partition that nobody of the group has claimed yet has no row, and all of its messages wait.
-- name: read_group_lag
with recursive parts(topic, partition) as (
  select topic, 0 from broker_topics
  union all
  select p.topic, p.partition + 1 from parts p join broker_topics t on t.topic = p.topic
  where p.partition + 1 < t.partitions)
select g.name, t.name,
       sum((select count(*) from broker_messages m
            where m.topic = p.topic and m.partition = p.partition
              and m.position > coalesce((select s.position from settle_shares s
                                         where s.scope = 'group/' || g.topic || '/' || g.name
                                           and s.share = p.partition), 0)))
from broker_groups g
join broker_topics t on t.topic = g.topic
join parts p on p.topic = g.topic
group by g.name, t.name
order by g.name, t.name
limit $1

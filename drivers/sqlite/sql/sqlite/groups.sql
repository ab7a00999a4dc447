-- How far the groups are, for the command line and the daemon's metrics. No payload is touched.

-- Lag: messages above the acknowledged position of their partition, counted in the index. A partition
-- that nobody of the group has claimed yet has no row, and all of its messages wait.
-- $1: now. $2: the most rows; below zero: all.
-- name: read_groups
with recursive parts(topic, partition) as (
  select topic, 0 from broker_topics
  union all
  select p.topic, p.partition + 1 from parts p join broker_topics t on t.topic = p.topic
  where p.partition + 1 < t.partitions)
select g.name, t.name,
       (select count(*) from settle_members m
        where m.scope = 'group/' || g.topic || '/' || g.name and m.lease_until > $1),
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
limit $2

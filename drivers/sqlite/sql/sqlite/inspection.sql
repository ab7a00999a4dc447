-- What others see of the broker's file, through sqlite/inspection.hpp. Payloads are touched by read_message alone, one at
-- a time.

-- name: find_broker
select count(*) as found from sqlite_master where type = 'table' and name = 'broker_topics'

-- $1: the most topics; below zero: all.
-- name: inspect_topics
select t.name, t.partitions, (select count(*) from broker_messages m where m.topic = t.topic) as messages
from broker_topics t order by t.topic limit $1

-- Lag: messages above the acknowledged position of their partition, counted in the index. A partition that nobody of the
-- group has claimed yet has no row, and all of its messages wait.
-- $1: now. $2: leases that end later were written before the clock was set back. $3: the most rows; below zero: all.
-- name: inspect_groups
with recursive parts(topic, partition) as (
  select topic, 0 from broker_topics
  union all
  select p.topic, p.partition + 1 from parts p join broker_topics t on t.topic = p.topic
  where p.partition + 1 < t.partitions)
select g.name as group_name, t.name as topic_name,
       (select count(*) from settle_members m
        where m.scope = 'group/' || g.topic || '/' || g.name and m.lease_until > $1 and m.lease_until <= $2)
         as members_alive,
       sum((select count(*) from broker_messages m
            where m.topic = p.topic and m.partition = p.partition
              and m.position > coalesce((select s.position from settle_shares s
                                         where s.scope = 'group/' || g.topic || '/' || g.name
                                           and s.share = p.partition), 0))) as lag
from broker_groups g
join broker_topics t on t.topic = g.topic
join parts p on p.topic = g.topic
group by g.name, t.name
order by g.name, t.name
limit $3

-- Whether a group has not acknowledged all messages of some topics up to a position. $1: the group. $2: the topics, as JSON.
-- name: waits_below
with recursive parts(topic, partition) as (
  select topic, 0 from broker_topics where name in (select value from json_each($2))
  union all
  select p.topic, p.partition + 1 from parts p join broker_topics t on t.topic = p.topic
  where p.partition + 1 < t.partitions)
select exists (select 1 from parts p where exists (
  select 1 from broker_messages m
  where m.topic = p.topic and m.partition = p.partition and m.position <= $3
    and m.position > coalesce((select s.position from settle_shares s
                               where s.scope = 'group/' || p.topic || '/' || $1 and s.share = p.partition), 0))) as waits

-- A topic's messages lie in the index by partition: the first or last few of each are merged by the caller.
-- name: first_positions
select position from broker_messages
where topic = $1 and partition = $2 and position > $3 order by position limit $4

-- name: last_positions
select position from broker_messages
where topic = $1 and partition = $2 order by position desc limit $3

-- name: read_message
select event_id, source, event_type, key, subject, content_type, time, extensions, payload
from broker_messages where position = $1

-- The groups with their topics, and how far each has acknowledged a partition; one that nobody of the group has claimed
-- yet has no row.
-- name: scan_groups
select g.name as group_name, t.topic as topic_number, t.name as topic_name, s.share as partition, s.position
from broker_groups g
join broker_topics t on t.topic = g.topic
left join settle_shares s on s.scope = 'group/' || g.topic || '/' || g.name
order by g.name, t.topic

-- Every message, by pages from the one that the last page ended with.
-- name: scan_messages
select m.position, m.topic as topic_number, t.name as topic_name, m.partition, m.event_id
from broker_messages m join broker_topics t on t.topic = m.topic
where m.position > $1 order by m.position limit $2

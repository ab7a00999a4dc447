-- Groups as an operator handles them. No payload is touched.

-- Groups that have something to read and no member, by the oldest message that they keep: as a rule, those that were
-- retired. A look at the next message of each partition, nothing is counted. $1: now. $2: leases that end later were
-- written before the clock was set back.
-- name: find_stuck_groups
with recursive parts(topic, partition) as (
  select topic, 0 from broker_topics
  union all
  select p.topic, p.partition + 1 from parts p join broker_topics t on t.topic = p.topic
  where p.partition + 1 < t.partitions),
stuck(name, topic, first) as (
  select g.name, g.topic,
         min((select min(m.position) from broker_messages m
              where m.topic = p.topic and m.partition = p.partition
                and m.position > coalesce((select s.position from settle_shares s
                                           where s.scope = 'group/' || g.topic || '/' || g.name
                                             and s.share = p.partition), 0)))
  from broker_groups g join parts p on p.topic = g.topic
  where not exists (select 1 from settle_members m
                    where m.scope = 'group/' || g.topic || '/' || g.name and m.lease_until > $1 and m.lease_until <= $2)
  group by g.name, g.topic)
select s.name as group_name, t.name as topic_name from stuck s join broker_topics t on t.topic = s.topic
where s.first is not null
order by s.first, s.name

-- The topics of a group, with their members as above. $1: the group; empty: of all of them. $2: now, $3: as above.
-- name: read_group
select g.name as group_name, t.name as topic_name, t.topic as topic_number, t.partitions,
       (select count(*) from settle_members m
        where m.scope = 'group/' || g.topic || '/' || g.name and m.lease_until > $2 and m.lease_until <= $3)
         as members_alive
from broker_groups g join broker_topics t on t.topic = g.topic
where $1 = '' or g.name = $1
order by g.name, t.name

-- What a group has not acknowledged of a partition: how many messages, and when the oldest and the newest came.
-- $1: the topic, $2: the partition, $3: the scope.
-- name: measure_unread
select count(*) as messages, min(stored_at) as oldest, max(stored_at) as newest from broker_messages
where topic = $1 and partition = $2
  and position > coalesce((select position from settle_shares where scope = $3 and share = $2), 0)

-- The last message of a partition that was taken before $3, or 0.
-- name: last_position_before
select coalesce(max(position), 0) as position from broker_messages where topic = $1 and partition = $2 and stored_at < $3

-- Whoever held the partition holds it no longer: its epoch has ended.
-- name: place_group
insert into settle_shares (scope, share, position, epoch) values ($1, $2, $3, 1)
on conflict (scope, share) do update
  set position = excluded.position, owner = null, epoch = epoch + 1, lease_until = 0, failures = 0, last_error = null

-- name: remove_group
delete from broker_groups where name = $1 and topic = $2

-- name: remove_members
delete from settle_members where scope = $1

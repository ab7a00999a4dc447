-- name: read_broker_id
select broker_id from broker_identity

-- name: find_topic
select topic, partitions from broker_topics where name = $1

-- name: add_topic
insert into broker_topics (name, partitions) values ($1, $2) on conflict (name) do nothing

-- name: read_all_topics
select topic, partitions from broker_topics

-- name: add_group
insert into broker_groups (name, topic) values ($1, $2) on conflict do nothing

-- name: insert_message
insert into broker_messages (topic, partition, event_id, source, event_type, key, subject, content_type,
                             time, extensions, payload, stored_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: read_head
select coalesce(max(position), 0) as head from broker_messages

-- name: read_partition
select position, event_id, source, event_type, key, subject, content_type, time, extensions, payload,
       nullif(stored_at, 0) as stored_at
from broker_messages
where topic = $1 and partition = $2 and position > $3
order by position limit $4

-- The first message of a partition that has to stay: not acknowledged by every registered group, or
-- taken in less than the time ago (or in the future: then the clock has jumped, and its age is not known).
-- $3 is the time of the oldest to keep; only the oldest $4 are looked at.
-- name: first_message_to_keep
select coalesce(min(case when stored_at >= $3 then position end), max(position) + 1, 0) as first_kept
from (select position, stored_at from broker_messages
      where topic = $1 and partition = $2
        and position <= coalesce((select min(coalesce(s.position, 0)) from broker_groups g
                                  left join settle_shares s
                                    on s.scope = 'group/' || g.topic || '/' || g.name and s.share = $2
                                  where g.topic = $1), 9223372036854775807)
      order by position limit $4)

-- name: delete_messages_below
delete from broker_messages where topic = $1 and partition = $2 and position < $3

-- name: used_bytes
select (p.page_count - f.freelist_count) * s.page_size as bytes
from pragma_page_count p, pragma_freelist_count f, pragma_page_size s

-- name: read_broker_id
select broker_id from broker_identity

-- name: find_topic
select topic, partitions from broker_topics where name = $1

-- name: add_topic
insert into broker_topics (name, partitions) values ($1, $2) on conflict (name) do nothing

-- name: add_group
insert into broker_groups (name, topic) values ($1, $2) on conflict do nothing

-- name: insert_message
insert into broker_messages (topic, partition, event_id, source, event_type, key, subject, content_type,
                             time, extensions, payload)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: read_head
select coalesce(max(position), 0) from broker_messages

-- name: read_partition
select position, event_id, source, event_type, key, subject, content_type, time, extensions, payload
from broker_messages
where topic = $1 and partition = $2 and position > $3
order by position limit $4

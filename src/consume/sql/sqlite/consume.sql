-- $2 is a JSON array of the batch's partitions. All of the consumer's are read: they are few, and to take the
-- list apart costs more.
-- name: read_fences
select partition, epoch, at_work from settle_consumer_fences where consumer = $1 and $2 is not null

-- name: raise_fence
insert into settle_consumer_fences (consumer, partition, epoch, at_work) values ($1, $2, $3, 1)
on conflict (consumer, partition) do update set epoch = excluded.epoch, at_work = 1 where epoch <= excluded.epoch

-- name: end_work
update settle_consumer_fences set at_work = 0 where consumer = $1 and partition = $2 and epoch = $3

-- One atomic insert-or-skip decides who runs the handler; there is no look before it.
-- name: claim
insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)
values ($1, $2, $3, $4, $5)
on conflict do nothing

-- The weak ways, for the bug zoo only.
-- name: is_processed
select 1 from settle_processed_events where consumer = $1 and message_id = $2

-- name: forget
delete from settle_processed_events where consumer = $1 and message_id = $2

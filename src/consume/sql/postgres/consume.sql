-- The rows stay locked until the batch has ended: whoever takes a partition over waits for it, or finds that it
-- never committed. $2 is a JSON array of the batch's partitions.
-- name: read_fences
select partition, epoch, at_work::integer from settle.consumer_fences
where consumer = $1 and partition in (select jsonb_array_elements_text($2::jsonb))
order by partition for update

-- name: raise_fence
insert into settle.consumer_fences as f (consumer, partition, epoch, at_work) values ($1, $2, $3, true)
on conflict (consumer, partition) do update set epoch = excluded.epoch, at_work = true where f.epoch <= excluded.epoch

-- name: end_work
update settle.consumer_fences set at_work = false where consumer = $1 and partition = $2 and epoch = $3

-- One atomic insert-or-skip decides who runs the handler; there is no look before it.
-- name: claim
insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)
values ($1, $2, $3, $4, $5)
on conflict do nothing

-- The weak ways, for the bug zoo only.
-- name: is_processed
select 1 from settle.processed_events where consumer = $1 and message_id = $2

-- name: forget
delete from settle.processed_events where consumer = $1 and message_id = $2

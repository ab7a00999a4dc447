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

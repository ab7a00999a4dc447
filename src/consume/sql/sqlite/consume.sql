-- One atomic insert-or-skip decides who runs the handler; there is no look before it. To take a
-- list apart and to give back what was new would cost more than a statement for each message.
-- name: claim
insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)
values ($1, $2, $3, $4, $5)
on conflict do nothing

-- The weak ways, for the bug zoo only.
-- name: is_processed
select 1 from settle_processed_events where consumer = $1 and message_id = $2

-- name: forget
delete from settle_processed_events where consumer = $1 and message_id = $2

-- One atomic insert-or-skip decides who runs the handler; there is no look before it. $2 is a JSON array of
-- deduplication keys; those that were new come back.
-- name: claim
insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)
select $1, jsonb_array_elements_text($2::jsonb), $3, $4, $5::bigint
on conflict do nothing
returning message_id

-- Of a message that is left to another transaction.
-- name: give_claim_back
delete from settle.processed_events where consumer = $1 and message_id = $2

-- The weak ways, for the bug zoo only.
-- name: is_processed
select 1 from settle.processed_events where consumer = $1 and message_id = $2

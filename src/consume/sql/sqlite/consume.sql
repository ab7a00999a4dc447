-- One atomic insert-or-skip decides who runs the handler; there is no look before it. $2 are deduplication
-- keys, packed as in base/packed.hpp. It only tells how many were new: to give them back costs half as much again.
-- name: claim
insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)
select $1, value, $3, $4, $5 from settle_keys($2) where true
on conflict do nothing

-- The same; those that were new come back.
-- name: claim_and_list
insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)
select $1, value, $3, $4, $5 from settle_keys($2) where true
on conflict do nothing
returning message_id

-- Of a message that is left to another transaction.
-- name: give_claim_back
delete from settle_processed_events where consumer = $1 and message_id = $2

-- The weak ways, for the bug zoo only.
-- name: is_processed
select 1 from settle_processed_events where consumer = $1 and message_id = $2

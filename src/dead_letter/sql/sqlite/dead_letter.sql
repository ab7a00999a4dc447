-- Dead letters. Those that wait are found by (status, id); a replay is decided by its letter's row alone.

-- name: insert_letter
insert into settle_dlq_events (consumer, consumer_version, reason, error, attempts, history, failed_at, blocks_key,
  topic, message_key, log, position, message_id, source, event_type, subject, content_type, event_time, extensions,
  payload)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
returning id

-- A replay has reached its consumer: of all its copies one changes the row.
-- name: take_letter
update settle_dlq_events set status = 'REPLAYED', replayed_at = $4
where id = $1 and replays = $2 and consumer = $3 and status = 'REPLAYING'
returning id, consumer, consumer_version, status, reason, error, attempts, history, failed_at, blocks_key, replays,
       replayed_at, topic, message_key, log, position, message_id, source, event_type, subject, content_type,
       event_time, extensions, payload, discarded_at, discard_reason

-- name: lock_replaying
select history, starts from settle_dlq_events
where id = $1 and replays = $2 and consumer = $3 and status = 'REPLAYING'

-- name: find_replayed
select consumer, topic, message_id from settle_dlq_events where id = $1

-- name: note_start
update settle_dlq_events set starts = $2, history = $3 where id = $1

-- name: return_letter
update settle_dlq_events set status = 'NEW', attempts = attempts + 1, starts = 0, error = $2, history = $3
where id = $1

-- Which letters there are. Ids are found first, by (status, id), and the rest is read of those alone.

-- Of status $1, above $2 and up to $3. What is empty matches everything; $11: not asked for again after that;
-- $12: a reason that does not.
-- name: find_letters
select id from settle_dlq_events
where status = $1 and id > $2 and id <= $3
  and ($4 = '' or consumer = $4) and ($5 = '' or topic = $5) and ($6 = '' or event_type = $6)
  and ($7 = '' or message_key = $7) and ($8 = '' or reason = $8)
  and failed_at >= $9 and failed_at < $10 and coalesce(replayed_at, 0) <= $11 and reason <> $12
order by id limit $13

-- The same of the ids in the JSON array $1, with status $2.
-- name: find_letters_among
select id from settle_dlq_events
where id in (select value from json_each($1)) and status = $2
  and ($3 = '' or consumer = $3) and ($4 = '' or topic = $4) and ($5 = '' or event_type = $5)
  and ($6 = '' or message_key = $6) and ($7 = '' or reason = $7)
  and failed_at >= $8 and failed_at < $9 and coalesce(replayed_at, 0) <= $10 and reason <> $11
order by id

-- name: count_letters
select count(*) as letters, coalesce(max(id), 0) as last_id from settle_dlq_events
where status = $1 and id > $2 and id <= $3
  and ($4 = '' or consumer = $4) and ($5 = '' or topic = $5) and ($6 = '' or event_type = $6)
  and ($7 = '' or message_key = $7) and ($8 = '' or reason = $8)
  and failed_at >= $9 and failed_at < $10 and coalesce(replayed_at, 0) <= $11 and reason <> $12

-- name: find_letters_of_message
select id from settle_dlq_events where message_id = $1 order by id

-- name: read_letters
select id, consumer, consumer_version, status, reason, error, attempts, history, failed_at, blocks_key, replays,
       replayed_at, topic, message_key, log, position, message_id, source, event_type, subject, content_type,
       event_time, extensions, payload, discarded_at, discard_reason
from settle_dlq_events where id in (select value from json_each($1)) order by id

-- name: count_groups
select consumer, topic, event_type, reason, status, count(*) as letters, min(failed_at) as first_at, max(failed_at) as last_at
from settle_dlq_events group by consumer, topic, event_type, reason, status
order by 6 desc, consumer, topic, event_type, reason, status

-- Those that have still the status $2: somebody else may be replaying the same ones.
-- name: send_letters
update settle_dlq_events set status = 'REPLAYING', replays = replays + 1, starts = 0, replayed_at = $3
where id in (select value from json_each($1)) and status = $2
returning id, consumer, consumer_version, status, reason, error, attempts, history, failed_at, blocks_key, replays,
       replayed_at, topic, message_key, log, position, message_id, source, event_type, subject, content_type,
       event_time, extensions, payload, discarded_at, discard_reason

-- name: read_letter_states
select id, status, replays from settle_dlq_events where id in (select value from json_each($1))

-- The keys that wait for the letters in $1, with status $2; in order, because they will be locked.
-- name: read_keys_that_wait
select distinct consumer, topic, message_key from settle_dlq_events
where id in (select value from json_each($1)) and status = $2 and blocks_key = 1
order by consumer, topic, message_key

-- Those that have still the status $2.
-- name: discard_letters
update settle_dlq_events set status = 'DISCARDED', discarded_at = $3, discard_reason = $4
where id in (select value from json_each($1)) and status = $2
returning consumer, topic, message_key, blocks_key

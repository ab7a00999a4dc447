-- Messages that wait after a failure, and the keys that they wait for.

-- $2 of all keys, those without one too. Nearly always there are fewer, and then no other look is needed.
-- name: read_first_parked_keys
select topic, message_key from settle_parked_keys where consumer = $1 limit $2

-- $3 is a JSON array of keys.
-- name: read_parked_keys_of_topic
select k.topic, k.message_key
from json_each($3) e
cross join settle_parked_keys k
  on k.consumer = $1 and k.topic = $2 and k.message_key = e.value and k.single = ''

-- One writer, and nobody holds anything that others pass over.
-- name: end_stopped_holder
select 0 as pid where $1 is null and $2 is null and $3 is null and $4 is null

-- name: park_message
insert into settle_parked_messages (consumer, topic, message_key, single, attempts, starts, first_failed_at, history, log,
  position, message_id, source, event_type, subject, content_type, event_time, extensions, payload, charged)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)

-- name: park_key
insert into settle_parked_keys (consumer, topic, message_key, single, next_at) values ($1, $2, $3, $4, $5)
on conflict do nothing

-- The first few of each key, in the order in which the keys are due; $3 messages at most.
-- name: read_due
select m.id, m.topic, m.message_key, m.single, m.attempts, m.starts, m.history, m.log, m.position, m.first_failed_at,
       m.message_id, m.source, m.event_type, m.subject, m.content_type, m.event_time, m.extensions, m.payload,
       m.charged
from (select topic, message_key, single, next_at from settle_parked_keys
      where consumer = $1 and next_at <= $2 order by next_at limit $3) k
cross join settle_parked_messages m
  on m.id in (select p.id from settle_parked_messages p
              where p.consumer = $1 and p.topic = k.topic and p.message_key = k.message_key and p.single = k.single
              order by p.id limit 8)
order by k.next_at, k.topic, k.message_key, k.single, m.id limit $3

-- The same, of keys whose first message is of a kind in $4, a JSON array of [topic, type]; no type means all.
-- name: read_due_of_kinds
select m.id, m.topic, m.message_key, m.single, m.attempts, m.starts, m.history, m.log, m.position, m.first_failed_at,
       m.message_id, m.source, m.event_type, m.subject, m.content_type, m.event_time, m.extensions, m.payload,
       m.charged
from (select topic, message_key, single, next_at from settle_parked_keys w
      where consumer = $1 and next_at <= $2 and exists (
        select 1 from json_each($4) h
        where json_extract(h.value, '$[0]') = w.topic and json_extract(h.value, '$[1]') in ('', (
          select p.event_type from settle_parked_messages p
          where p.consumer = $1 and p.topic = w.topic and p.message_key = w.message_key and p.single = w.single
          order by p.id limit 1)))
      order by next_at limit $3) k
cross join settle_parked_messages m
  on m.id in (select p.id from settle_parked_messages p
              where p.consumer = $1 and p.topic = k.topic and p.message_key = k.message_key and p.single = k.single
              order by p.id limit 8)
order by k.next_at, k.topic, k.message_key, k.single, m.id limit $3

-- Two looks at the ends of the index; asked for together, SQLite would walk through all of it.
-- name: read_next_due
select (select min(next_at) from settle_parked_keys where consumer = $1) as earliest,
       (select max(next_at) from settle_parked_keys where consumer = $1) as latest

-- A clock was set back: nothing waits for longer than until $3.
-- name: pull_parked_keys
update settle_parked_keys set next_at = $2 where consumer = $1 and next_at > $3

-- $2 is a JSON array of [topic, key, single]. One without a time waits for an operator: whoever had it in hand before
-- somebody else gave its message up has it no longer.
-- name: lock_parked_keys
select k.topic, k.message_key, k.single
from json_each($2) e
cross join settle_parked_keys k
  on k.consumer = $1 and k.topic = json_extract(e.value, '$[0]') and k.message_key = json_extract(e.value, '$[1]')
     and k.single = json_extract(e.value, '$[2]') and k.next_at is not null

-- $1 is a JSON array of ids.
-- name: start_parked
update settle_parked_messages set starts = starts + 1 where id in (select value from json_each($1))

-- name: end_parked
update settle_parked_messages set starts = starts - 1 where starts > 0 and id in (select value from json_each($1))

-- name: read_parked_attempts
select id, attempts from settle_parked_messages where id in (select value from json_each($1))

-- name: take_parked
delete from settle_parked_messages where id = $1

-- name: charge_parked
update settle_parked_messages set attempts = $2, history = $3, starts = 0, first_failed_at = $4, charged = $5
where id = $1

-- name: set_parked_key
update settle_parked_keys set next_at = $5
where consumer = $1 and topic = $2 and message_key = $3 and single = $4

-- The next one of the key is due, or nothing waits for it any more.
-- name: go_on_with_parked_key
update settle_parked_keys set next_at = $5
where consumer = $1 and topic = $2 and message_key = $3 and single = $4
  and exists (select 1 from settle_parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
              and m.single = $4)

-- name: drop_parked_key
delete from settle_parked_keys
where consumer = $1 and topic = $2 and message_key = $3 and single = $4
  and not exists (select 1 from settle_parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
                  and m.single = $4)

-- A key that waits for an operator. Nobody works on it, or adds to it, until the end of the transaction.
-- name: lock_blocked_key
select 1 from settle_parked_keys where consumer = $1 and topic = $2 and message_key = $3 and single = ''

-- name: release_blocked_key
update settle_parked_keys set next_at = $4
where consumer = $1 and topic = $2 and message_key = $3 and single = '' and next_at is null
  and exists (select 1 from settle_parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
              and m.single = '')

-- Messages that wait after a failure, and the keys that they wait for. Whoever works on a key, or adds to it,
-- holds its row; everybody else passes over the rows that somebody holds.

-- $2 is a JSON array of [topic, key]. Nearly always nothing is parked, and then the list is not looked at. The rows are
-- locked; of one that somebody else has the third column is 1, or of one that has just gone.
-- name: read_parked_keys
select k.topic, k.message_key,
  ((select 1 from settle.parked_keys p
    where p.consumer = $1 and p.topic = k.topic and p.message_key = k.message_key and p.single = ''
    for update skip locked) is null)::integer as is_elsewhere
from jsonb_array_elements($2::jsonb) e
cross join lateral (
  select p.topic, p.message_key from settle.parked_keys p
  where p.consumer = $1 and p.topic = e ->> 0 and p.message_key = e ->> 1 and p.single = '' limit 1) k
where exists (select from settle.parked_keys where consumer = $1)

-- The session that has a key, if its transaction is older than $4 microseconds, which is more than a handler may take: it
-- was stopped, or its handler hangs. As end_stopped_owner.
-- name: end_stopped_holder
with holder as materialized (
  select l.pid from settle.parked_keys k
  join pg_locks l on l.locktype = 'transactionid' and l.transactionid = k.xmax and l.granted
                 and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
  join pg_stat_activity a on a.pid = l.pid and a.xact_start < clock_timestamp() - $4::bigint * interval '1 microsecond'
  where k.consumer = $1 and k.topic = $2 and k.message_key = $3 and k.single = '')
select pid from holder where pg_terminate_backend(pid, 5000)

-- name: park_message
insert into settle.parked_messages (consumer, topic, message_key, single, attempts, starts, first_failed_at, history, log,
  position, message_id, source, event_type, subject, content_type, event_time, extensions, payload, charged)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)

-- name: park_key
insert into settle.parked_keys (consumer, topic, message_key, single, next_at) values ($1, $2, $3, $4, $5)
on conflict do nothing

-- The first few of each key, in the order in which the keys are due; $3 messages at most.
-- name: read_due
select m.id, m.topic, m.message_key, m.single, m.attempts, m.starts, m.history, m.log, m.position, m.first_failed_at,
       m.message_id, m.source, m.event_type, m.subject, m.content_type, m.event_time, m.extensions, m.payload,
       m.charged
from (select topic, message_key, single, next_at from settle.parked_keys
      where consumer = $1 and next_at <= $2 order by next_at limit $3::integer) k
cross join lateral (
  select * from settle.parked_messages p
  where p.consumer = $1 and p.topic = k.topic and p.message_key = k.message_key and p.single = k.single
  order by p.id limit 8) m
order by k.next_at, k.topic, k.message_key, k.single, m.id limit $3::integer

-- The same, of keys whose first message is of a kind in $4, a JSON array of [topic, type]; no type means all.
-- name: read_due_of_kinds
select m.id, m.topic, m.message_key, m.single, m.attempts, m.starts, m.history, m.log, m.position, m.first_failed_at,
       m.message_id, m.source, m.event_type, m.subject, m.content_type, m.event_time, m.extensions, m.payload,
       m.charged
from (select topic, message_key, single, next_at from settle.parked_keys w
      where consumer = $1 and next_at <= $2 and exists (
        select from jsonb_array_elements($4::jsonb) h
        where h ->> 0 = w.topic and h ->> 1 in ('', (
          select p.event_type from settle.parked_messages p
          where p.consumer = $1 and p.topic = w.topic and p.message_key = w.message_key and p.single = w.single
          order by p.id limit 1)))
      order by next_at limit $3::integer) k
cross join lateral (
  select * from settle.parked_messages p
  where p.consumer = $1 and p.topic = k.topic and p.message_key = k.message_key and p.single = k.single
  order by p.id limit 8) m
order by k.next_at, k.topic, k.message_key, k.single, m.id limit $3::integer

-- name: read_next_due
select min(next_at) as earliest, max(next_at) as latest from settle.parked_keys where consumer = $1

-- A clock was set back: nothing waits for longer than until $3.
-- name: pull_parked_keys
update settle.parked_keys set next_at = $2 where consumer = $1 and next_at > $3

-- $2 is a JSON array of [topic, key, single]. One without a time waits for an operator: whoever had it in hand before
-- somebody else gave its message up has it no longer.
-- name: lock_parked_keys
select k.topic, k.message_key, k.single
from jsonb_array_elements($2::jsonb) e
cross join lateral (
  select p.topic, p.message_key, p.single from settle.parked_keys p
  where p.consumer = $1 and p.topic = e ->> 0 and p.message_key = e ->> 1 and p.single = e ->> 2
    and p.next_at is not null
  for update skip locked) k

-- $1 is a JSON array of ids.
-- name: start_parked
update settle.parked_messages set starts = starts + 1 where id in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- Who runs one at this moment brings its count to an end as well, and is not waited for.
-- name: end_parked
update settle.parked_messages set starts = starts - 1
where starts > 0 and id in (
  select id from settle.parked_messages where id in (select jsonb_array_elements_text($1::jsonb)::bigint)
  for update skip locked)

-- name: read_parked_attempts
select id, attempts from settle.parked_messages where id in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: take_parked
delete from settle.parked_messages where id = $1

-- name: charge_parked
update settle.parked_messages set attempts = $2, history = $3, starts = 0, first_failed_at = $4, charged = $5
where id = $1

-- name: set_parked_key
update settle.parked_keys set next_at = $5
where consumer = $1 and topic = $2 and message_key = $3 and single = $4

-- The next one of the key is due, or nothing waits for it any more.
-- name: go_on_with_parked_key
update settle.parked_keys set next_at = $5
where consumer = $1 and topic = $2 and message_key = $3 and single = $4
  and exists (select from settle.parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
              and m.single = $4)

-- name: drop_parked_key
delete from settle.parked_keys
where consumer = $1 and topic = $2 and message_key = $3 and single = $4
  and not exists (select from settle.parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
                  and m.single = $4)

-- A key that waits for an operator. Nobody works on it, or adds to it, until the end of the transaction.
-- name: lock_blocked_key
select 1 from settle.parked_keys where consumer = $1 and topic = $2 and message_key = $3 and single = '' for update

-- name: release_blocked_key
update settle.parked_keys set next_at = $4
where consumer = $1 and topic = $2 and message_key = $3 and single = '' and next_at is null
  and exists (select from settle.parked_messages m where m.consumer = $1 and m.topic = $2 and m.message_key = $3
              and m.single = '')

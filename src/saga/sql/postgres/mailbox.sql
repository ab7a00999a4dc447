-- Events and the sagas that wait for them meet under a lock per host, type and key. The lock is a statement of its own:
-- only what begins after it sees what the one before has committed.

-- $1 is a JSON array of numbers, sorted.
-- name: lock_keys
select pg_advisory_xact_lock(k::bigint) from jsonb_array_elements_text($1::jsonb) k

-- name: add_mail
insert into settle.saga_mailbox (host, type, key, event_id, payload, received_at) values ($1, $2, $3, $4, $5, $6)
on conflict (host, event_id) do nothing

-- name: add_wait
insert into settle.saga_waits (no, n, host, type, key) values ($1, $2, $3, $4, $5)

-- The oldest event goes to the oldest wait. $2 is a JSON array of [type, key].
-- name: find_pairs
with meeting as materialized (
  select x ->> 0 as type, x ->> 1 as key from jsonb_array_elements($2::jsonb) x),
e as (select m.id, m.type, m.key, m.payload, row_number() over (partition by m.type, m.key order by m.id) as place
      from settle.saga_mailbox m join meeting using (type, key) where m.host = $1 and m.no is null),
w as (select x.no, x.n, x.type, x.key, row_number() over (partition by x.type, x.key order by x.no, x.n) as place
      from settle.saga_waits x join meeting using (type, key) where x.host = $1)
select e.id, w.no, w.n, e.payload from e join w using (type, key, place) order by w.no, w.n

-- Which of these somebody waits for.
-- name: find_waiting
with meeting as materialized (
  select x ->> 0 as type, x ->> 1 as key from jsonb_array_elements($2::jsonb) x)
select distinct x.type, x.key from settle.saga_waits x join meeting using (type, key) where x.host = $1

-- name: give_mail
update settle.saga_mailbox set no = $2, n = $3 where id = $1

-- name: drop_wait
delete from settle.saga_waits where no = $1 and n = $2

-- name: wake_saga
update settle.sagas set due_at = 0, wakes = wakes + 1 where no = $1 and ended_at is null

-- name: read_mail
select no, n, payload from settle.saga_mailbox where no in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: take_mail_back
update settle.saga_mailbox set no = null, n = null where no = $1 and n = $2

-- name: find_old_mail
select id from settle.saga_mailbox where no is null and received_at < $1 order by received_at limit $2 for update skip locked

-- name: drop_old_mail
delete from settle.saga_mailbox where no is null and id in (select jsonb_array_elements_text($1::jsonb)::bigint)

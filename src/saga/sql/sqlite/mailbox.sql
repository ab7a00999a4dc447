-- Events and the sagas that wait for them. One transaction writes at a time: that is the lock.

-- name: lock_keys
select $1

-- name: add_mail
insert into settle_saga_mailbox (host, type, key, event_id, payload, received_at) values ($1, $2, $3, $4, $5, $6)
on conflict (host, event_id) do nothing

-- name: add_wait
insert into settle_saga_waits (no, n, host, type, key) values ($1, $2, $3, $4, $5)

-- The oldest event goes to the oldest wait. $2 is a JSON array of [type, key]. CROSS JOIN keeps the order: a million waits of
-- other keys are not read.
-- name: find_pairs
with meeting as materialized (
  select json_extract(value, '$[0]') as type, json_extract(value, '$[1]') as key from json_each($2)),
e as (select m.id, m.type, m.key, m.payload, row_number() over (partition by m.type, m.key order by m.id) as place
      from meeting cross join settle_saga_mailbox m
      where m.host = $1 and m.type = meeting.type and m.key = meeting.key and m.no is null),
w as (select x.no, x.n, x.type, x.key, row_number() over (partition by x.type, x.key order by x.no, x.n) as place
      from meeting cross join settle_saga_waits x
      where x.host = $1 and x.type = meeting.type and x.key = meeting.key)
select e.id, w.no, w.n, e.payload from e join w using (type, key, place) order by w.no, w.n

-- Which of these somebody waits for.
-- name: find_waiting
with meeting as materialized (
  select json_extract(value, '$[0]') as type, json_extract(value, '$[1]') as key from json_each($2))
select distinct x.type, x.key from settle_saga_waits x join meeting using (type, key) where x.host = $1

-- name: give_mail
update settle_saga_mailbox set no = $2, n = $3 where id = $1

-- name: drop_wait
delete from settle_saga_waits where no = $1 and n = $2

-- name: wake_saga
update settle_sagas set due_at = 0, wakes = wakes + 1 where no = $1 and ended_at is null

-- name: read_mail
select no, n, payload from settle_saga_mailbox where no in (select value from json_each($1))

-- name: take_mail_back
update settle_saga_mailbox set no = null, n = null where no = $1 and n = $2

-- name: find_old_mail
select id from settle_saga_mailbox where no is null and received_at < $1 order by received_at limit $2

-- name: drop_old_mail
delete from settle_saga_mailbox where no is null and id in (select value from json_each($1))

-- The journal of webhooks. A row is RECEIVED or PARKED while a worker has to do something, FAILED while an operator
-- has to, and over otherwise.

-- The row, or nothing if there is one of this id; it waits for whoever is writing that one. $11: RECEIVED, or
-- APPLIED by whoever applies it in this transaction. Without a row, one from before the horizon may be a copy of
-- what was removed.
-- name: insert_event
insert into settle.webhook_events (source, event_id, event_type, event_key, provider_at, received_at, newest_only,
  headers, body, status, waits_since, next_at, finished_at)
select $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::boolean, $8::text, $9::bytea,
       case when late then 'TOO_LATE' else $11::text end, $6,
       case when $11 = 'RECEIVED' and not late then $6 end, case when $11 = 'APPLIED' or late then $6 end
from (select exists (select from settle.webhook_horizons where source = $1 and $5 <= until + $10::bigint) as late) h
on conflict (source, event_id) do nothing
returning id, status

-- Those of the sources $1 of which something is due.
-- name: due_sources
select s.name from jsonb_array_elements_text($1::jsonb) s (name)
where exists (select from settle.webhook_events e where e.source = s.name and e.next_at <= $2)

-- The next one that is due, as applied. Whoever fails with it rolls back. Others pass over it meanwhile.
-- name: take_due
update settle.webhook_events set status = 'APPLIED', finished_at = $2, next_at = null
where id = (select id from settle.webhook_events where source = $1 and next_at <= $2 order by next_at, id limit 1
            for update skip locked)
returning id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts,
          newest_only, parks, waits_since, passing, starts

-- The one that was marked, likewise. It waits for whoever else is looking at it.
-- name: take_marked
update settle.webhook_events set status = 'APPLIED', finished_at = $2, next_at = null
where id = $1 and starts > 0 and next_at is not null
returning id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts,
          newest_only, parks, waits_since, passing, starts

-- Before its handler runs, in a transaction of its own: if the process ends over it, this stays. Others leave it alone
-- until $3, so that no two mark it at once.
-- name: mark_start
update settle.webhook_events set starts = starts + 1, next_at = $3 where id = $1 and starts = $2 and next_at is not null

-- The process has not ended after all.
-- name: unmark_start
update settle.webhook_events set starts = starts - 1, next_at = $2 where id = $1 and starts > 0 and next_at is not null

-- In the transaction that took it: it is not applied after all.
-- name: set_outcome
update settle.webhook_events set status = $2, next_at = $3, finished_at = $4, parks = parks + $5, last_error = $6,
  starts = 0
where id = $1

-- In a transaction after that one was rolled back. Somebody else may have been faster.
-- name: charge_event
update settle.webhook_events set status = case when $4::boolean then status else 'FAILED' end,
  attempts = attempts + $3, passing = passing + $7, starts = 0, next_at = case when $4 then $5::bigint end,
  last_error = $6
where id = $1 and attempts = $2 and next_at is not null

-- Waits for whoever else applies one of this key.
-- name: lock_key
insert into settle.webhook_keys as k (source, event_key, touched_at) values ($1, $2, $3)
on conflict (source, event_key) do update set touched_at = greatest(k.touched_at, excluded.touched_at)
returning newest_at

-- name: note_newest
update settle.webhook_keys set newest_at = greatest(newest_at, $3) where source = $1 and event_key = $2

-- Those that waited for this. One that somebody is trying just now waits for our key, and will see what we did: to
-- wait for its row would be a deadlock.
-- name: wake_parked
update settle.webhook_events set next_at = $3
where id in (select id from settle.webhook_events
             where source = $1 and event_key = $2 and finished_at is null and status = 'PARKED' and next_at > $3
             order by id for update skip locked)

-- A clock that was set back must not put them off: nobody waits for longer than until $3.
-- name: pull_waiting
update settle.webhook_events set next_at = $2 where source = $1 and next_at > $3

-- name: find_event
select id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts, newest_only,
       parks, waits_since, passing, starts, status, last_error
from settle.webhook_events where source = $1 and event_id = $2

-- name: list_events
select id, source, event_id, event_type, event_key, status, last_error, attempts, received_at, next_at
from settle.webhook_events
where id > $1 and ($2 = '' or source = $2)
  and ($3 = 'ANY' or status = $3 or ($3 = '' and finished_at is null))
order by id limit $4

-- name: retry_event
update settle.webhook_events set status = 'RECEIVED', attempts = 0, parks = 0, passing = 0, starts = 0, waits_since = $3,
  next_at = $3, finished_at = null
where source = $1 and event_id = $2 and status in ('FAILED', 'TOO_LATE')

-- name: find_finished
select id, source, received_at from settle.webhook_events
where finished_at is not null and finished_at < $1 order by finished_at, id limit $2 for update skip locked

-- name: raise_horizon
insert into settle.webhook_horizons as h (source, until) values ($1, $2)
on conflict (source) do update set until = greatest(h.until, excluded.until)

-- name: delete_events
delete from settle.webhook_events where id in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- Keys that nobody has used for as long, at most $2 of them.
-- name: delete_keys
delete from settle.webhook_keys where (source, event_key) in
  (select k.source, k.event_key from settle.webhook_keys k where k.touched_at < $1
     and not exists (select from settle.webhook_events e
                     where e.source = k.source and e.event_key = k.event_key and e.finished_at is null)
   order by k.touched_at limit $2 for update skip locked)

-- The journal of webhooks. A row is RECEIVED or PARKED while a worker has to do something, FAILED while an operator
-- has to, and over otherwise.

-- The row, or nothing if there is one of this id. $11: RECEIVED, or APPLIED by whoever applies it in this
-- transaction. Without a row, one from before the horizon may be a copy of what was removed.
-- name: insert_event
insert into settle_webhook_events (source, event_id, event_type, event_key, provider_at, received_at, newest_only,
  headers, body, status, waits_since, next_at, finished_at)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, case when late then 'TOO_LATE' else $11 end, $6,
       case when $11 = 'RECEIVED' and not late then $6 end, case when $11 = 'APPLIED' or late then $6 end
from (select exists (select 1 from settle_webhook_horizons where source = $1 and $5 <= until + $10) as late)
where true
on conflict (source, event_id) do nothing
returning id, status

-- Those of the sources $1 of which something is due. A look: it keeps nobody from writing.
-- name: due_sources
select s.value as name from json_each($1) s
where exists (select 1 from settle_webhook_events e where e.source = s.value and e.next_at <= $2)

-- The next one that is due, as applied. Whoever fails with it rolls back.
-- name: take_due
update settle_webhook_events set status = 'APPLIED', finished_at = $2, next_at = null
where id = (select id from settle_webhook_events where source = $1 and next_at <= $2 order by next_at, id limit 1)
returning id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts,
          newest_only, parks, waits_since, passing, starts

-- The one that was marked, likewise.
-- name: take_marked
update settle_webhook_events set status = 'APPLIED', finished_at = $2, next_at = null
where id = $1 and starts > 0 and next_at is not null
returning id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts,
          newest_only, parks, waits_since, passing, starts

-- Before its handler runs, in a transaction of its own: if the process ends over it, this stays. Others leave it alone
-- until $3, so that no two mark it at once.
-- name: mark_start
update settle_webhook_events set starts = starts + 1, next_at = $3 where id = $1 and starts = $2 and next_at is not null

-- The process has not ended after all.
-- name: unmark_start
update settle_webhook_events set starts = starts - 1, next_at = $2 where id = $1 and starts > 0 and next_at is not null

-- In the transaction that took it: it is not applied after all.
-- name: set_outcome
update settle_webhook_events set status = $2, next_at = $3, finished_at = $4, parks = parks + $5, last_error = $6,
  starts = 0
where id = $1

-- In a transaction after that one was rolled back. Somebody else may have been faster.
-- name: charge_event
update settle_webhook_events set status = case when $4 then status else 'FAILED' end, attempts = attempts + $3,
  passing = passing + $7, starts = 0, next_at = case when $4 then $5 end, last_error = $6
where id = $1 and attempts = $2 and next_at is not null

-- Waits for whoever else applies one of this key.
-- name: lock_key
insert into settle_webhook_keys (source, event_key, touched_at) values ($1, $2, $3)
on conflict (source, event_key) do update set touched_at = max(touched_at, excluded.touched_at)
returning newest_at

-- name: note_newest
update settle_webhook_keys set newest_at = max(coalesce(newest_at, $3), $3) where source = $1 and event_key = $2

-- Those that waited for this.
-- name: wake_parked
update settle_webhook_events set next_at = $3
where source = $1 and event_key = $2 and finished_at is null and status = 'PARKED' and next_at > $3

-- A clock that was set back must not put them off: nobody waits for longer than until $3.
-- name: pull_waiting
update settle_webhook_events set next_at = $2 where source = $1 and next_at > $3

-- name: find_event
select id, source, event_id, event_type, event_key, provider_at, received_at, headers, body, attempts, newest_only,
       parks, waits_since, passing, starts, status, last_error
from settle_webhook_events where source = $1 and event_id = $2

-- name: list_events
select id, source, event_id, event_type, event_key, status, last_error, attempts, received_at, next_at
from settle_webhook_events
where id > $1 and ($2 = '' or source = $2)
  and ($3 = 'ANY' or status = $3 or ($3 = '' and finished_at is null))
order by id limit $4

-- name: retry_event
update settle_webhook_events set status = 'RECEIVED', attempts = 0, parks = 0, passing = 0, starts = 0, waits_since = $3,
  next_at = $3, finished_at = null
where source = $1 and event_id = $2 and status in ('FAILED', 'TOO_LATE')

-- name: find_finished
select id, source, received_at from settle_webhook_events
where finished_at is not null and finished_at < $1 order by finished_at, id limit $2

-- name: raise_horizon
insert into settle_webhook_horizons (source, until) values ($1, $2)
on conflict (source) do update set until = max(until, excluded.until)

-- name: delete_events
delete from settle_webhook_events where id in (select value from json_each($1))

-- Keys that nobody has used for as long, at most $2 of them.
-- name: delete_keys
delete from settle_webhook_keys where (source, event_key) in
  (select k.source, k.event_key from settle_webhook_keys k where k.touched_at < $1
     and not exists (select 1 from settle_webhook_events e
                     where e.source = k.source and e.event_key = k.event_key and e.finished_at is null)
   order by k.touched_at limit $2)

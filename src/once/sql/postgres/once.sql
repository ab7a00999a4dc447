-- Whoever has the lock may run; it goes with the transaction, and nobody waits for it. Two identities that share a
-- lock number only make each other come again. The row may be missing though it has just been committed: this
-- statement's snapshot is older than its lock. Then record_key is refused, and the run is rolled back.
-- A second lock tells others what is asked for: $3 is the upper half of $2, $4 a number of the fingerprint, or null.
-- Most keys are new, so the record itself is left to read_key: its columns would cost as much where there is none.
-- name: open_key
select pg_try_advisory_xact_lock($2::bigint) as ours, pg_try_advisory_xact_lock($3::integer, $4::integer) as shown,
  current_setting('synchronous_commit') as durability,
  exists (select from settle.idempotency_keys where identity = $1) as recorded

-- Whether the one that holds the key $1 has shown a fingerprint, and not this one. pg_locks is read once, so both of its
-- locks are from the same moment; one that is just letting go of them, or has shown none, does not differ.
-- name: holder_differs
with held as materialized (
  select pid, classid, objid, objsubid from pg_locks
  where locktype = 'advisory' and granted
    and database = (select oid from pg_database where datname = current_database())
    and classid = (($1::bigint >> 32) & 4294967295)::oid)
select coalesce(bool_and(shown.objid <> ($2::bigint & 4294967295)::oid), false)::integer as differs
from held holder join held shown on shown.pid = holder.pid and shown.objsubid = 2
where holder.objsubid = 1 and holder.objid = ($1::bigint & 4294967295)::oid

-- Waits for a transaction whose end is unknown: it holds the lock until it has ended.
-- name: wait_for_key
select pg_advisory_xact_lock($1)

-- name: read_key
select run, fingerprint, status, headers, body, response_hash
from settle.idempotency_keys where identity = $1

-- Not "on conflict do nothing": a second record of one key must take its transaction down with it. $11 is what
-- synchronous_commit was when the key was opened: work that has lowered it, by whatever means, must not make its record
-- less durable, because the answer is given next. $12: for this transaction only, where the session is somebody else's.
-- Setting it in vain would cost a third as much as the record itself.
-- name: record_key
insert into settle.idempotency_keys (identity, service, run, fingerprint, answered_at, expires_at, status, headers, body,
  response_hash)
values ($1, $2, $3, $4, $5,
  case when current_setting('synchronous_commit') = $11::text or set_config('synchronous_commit', $11::text, $12::boolean) <> ''
    then $6::bigint end,
  $7, $8, $9, $10)

-- A process whose clock is ahead must not forget early: then a key would run twice. The clock is read once, in a query
-- of its own, so that the index ends the search.
-- name: forget_expired
delete from settle.idempotency_keys where identity = any (array(
  select identity from settle.idempotency_keys
  where expires_at <= (select least($1::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint))
  order by expires_at limit $2 for update skip locked))

-- Whoever has the lock may run; it goes with the transaction, and nobody waits for it. Two identities that share a
-- lock number only make each other come again. The row may be missing though it has just been committed: this
-- statement's snapshot is older than its lock. Then record_key is refused, and the run is rolled back.
-- name: open_key
select pg_try_advisory_xact_lock($2)::integer, k.run, k.fingerprint, k.status, k.headers, k.body, k.response_hash
from (select) one left join settle.idempotency_keys k on k.identity = $1

-- Waits for a transaction whose end is unknown: it holds the lock until it has ended.
-- name: wait_for_key
select pg_advisory_xact_lock($1)

-- name: read_key
select 1, run, fingerprint, status, headers, body, response_hash
from settle.idempotency_keys where identity = $1

-- Not "on conflict do nothing": a second record of one key must take its transaction down with it.
-- name: record_key
insert into settle.idempotency_keys (identity, service, run, fingerprint, answered_at, expires_at, status, headers, body,
  response_hash)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- name: forget_expired
delete from settle.idempotency_keys where identity = any (array(
  select identity from settle.idempotency_keys where expires_at <= $1 order by expires_at limit $2 for update skip locked))

-- One transaction writes at a time: whoever gets here has no rival. $2 to $4 are for databases where it may have one.
-- name: open_key
select 1 as ours, coalesce($2, $3, $4) as shown, '' as durability,
  exists (select 1 from settle_idempotency_keys where identity = $1) as recorded

-- name: holder_differs
select 0 as differs where $1 is not null and $2 is not null

-- name: wait_for_key
select $1

-- name: read_key
select run, fingerprint, status, headers, body, response_hash
from settle_idempotency_keys where identity = $1

-- Not "on conflict do nothing": a second record of one key must take its transaction down with it.
-- name: record_key
insert into settle_idempotency_keys (identity, service, run, fingerprint, answered_at, expires_at, status, headers, body,
  response_hash)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 where $11 is not null and $12 is not null

-- name: forget_expired
delete from settle_idempotency_keys where identity in (
  select identity from settle_idempotency_keys where expires_at <= $1 order by expires_at limit $2)

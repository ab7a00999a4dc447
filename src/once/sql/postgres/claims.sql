-- The server's clock decides: it is the one that all processes share. $8 would be another one, and is null.
-- name: claim_key
insert into settle.idempotency_claims (identity, service, run, epoch, fingerprint, claimed_at, lease_until, expires_at)
select $1, $2, $3, $4, $5, at, at + $6::bigint, $7
from coalesce($8::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) at
on conflict do nothing

-- By the same run or, after the lease, by nobody else: an owner that was slow may still tell what it did.
-- name: complete_claim
update settle.idempotency_claims
set status = $4, headers = $5, body = $6, response_hash = $7, expires_at = $3
where identity = $1 and run = $2 and status is null

-- name: renew_claim
update settle.idempotency_claims
set lease_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint
where identity = $1 and run = $2 and status is null

-- name: release_claim
delete from settle.idempotency_claims where identity = $1 and run = $2 and status is null

-- name: read_claim
select epoch, run, fingerprint, status, headers, body, response_hash,
  lease_until - coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
from settle.idempotency_claims where identity = $1

-- Only from the one that was seen, and only while it is still silent.
-- name: take_over_claim
update settle.idempotency_claims
set run = $2, epoch = $3,
  lease_until = coalesce($5::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $4::bigint
where identity = $1 and epoch = $6 and status is null
  and lease_until <= coalesce($5::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)

-- name: list_unknown_claims
select identity, service, run, epoch, claimed_at, lease_until from settle.idempotency_claims
where status is null
  and lease_until <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
order by lease_until limit $2

-- name: forget_expired_claims
delete from settle.idempotency_claims where identity = any (array(
  select identity from settle.idempotency_claims where expires_at <= $1 and status is not null
  order by expires_at limit $2 for update skip locked))

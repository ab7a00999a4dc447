-- $8 is the clock of this process: on one machine there is one.
-- name: claim_key
insert into settle_idempotency_claims
  (identity, service, run, epoch, fingerprint, claimed_at, lease_until, expires_at, about)
select $1, $2, $3, max($8, highest_gone + 1), $4, $8, $8 + $5, $6, $7
from settle_claim_epoch where one = 1
on conflict do nothing
returning identity, run, epoch

-- By the same run or, after the lease, by nobody else: an owner that was slow may still tell what it did. Kept for as
-- long as the claim has promised, if that is longer.
-- name: complete_claim
update settle_idempotency_claims
set status = $4, headers = $5, body = $6, response_hash = $7, expires_at = max(expires_at, $3)
where identity = $1 and run = $2 and status is null

-- name: renew_claim
update settle_idempotency_claims set lease_until = $4 + $3 where identity = $1 and run = $2 and status is null

-- For a claim that comes again: it gets the lease that it asks for, and keeps one that is longer.
-- name: extend_claim
update settle_idempotency_claims set lease_until = max(lease_until, $4 + $3)
where identity = $1 and run = $2 and status is null

-- name: release_claim
delete from settle_idempotency_claims where identity = $1 and run = $2 and status is null

-- name: read_claim
select epoch, run, fingerprint, status, headers, body, response_hash, lease_until - $2 as lease_left
from settle_idempotency_claims where identity = $1

-- Only from the one that was seen, and only while it is still silent.
-- name: take_over_claim
update settle_idempotency_claims
set run = $2, epoch = max(epoch + 1, $4), lease_until = $4 + $3, expires_at = max(expires_at, $6),
  about = coalesce($7, about)
where identity = $1 and epoch = $5 and status is null and lease_until <= $4
returning epoch

-- name: list_unknown_claims
select identity, service, run, epoch, claimed_at, lease_until, about from settle_idempotency_claims
where status is null and lease_until <= $1 order by lease_until limit $2

-- Of the oldest, those without an answer are looked at again a day later: they stay, and must not be walked over by every
-- sweep until then.
-- name: put_off_open_claims
update settle_idempotency_claims set expires_at = $3 where status is null and identity in (
  select identity from settle_idempotency_claims where expires_at <= $1 order by expires_at limit $2)

-- name: forget_expired_claims
delete from settle_idempotency_claims where status is not null and identity in (
  select identity from settle_idempotency_claims where expires_at <= $1 order by expires_at limit $2)

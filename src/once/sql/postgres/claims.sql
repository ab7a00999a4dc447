-- The server's clock decides: it is the one that all processes share. $8 would be another one, and is null.
-- All claims of a batch in one statement, an array per column; they are inserted, and those that were come back, in
-- the order of the arrays.
--
-- Epochs of a key grow, because whoever draws one has the key's turn until its transaction ends (turns are numbers of
-- advisory locks): all that were drawn for it before are lower, and none is drawn while the insert waits. A key whose
-- turn somebody else has is left out, unless $10 says to wait for it: who asks for a key that is long completed must
-- not queue.
-- name: claim_keys
with turns as materialized (
  select identity, service, run, fingerprint, lease, expires_at, about,
    case when $10::bigint[] is null then pg_try_advisory_xact_lock(turn)
         else pg_advisory_xact_lock(turn) is not null end as ours
  from (select unnest($1::bytea[]) identity, unnest($2::text[]) service, unnest($3::text[]) run,
      unnest($4::bytea[]) fingerprint, unnest($5::bigint[]) lease, unnest($6::bigint[]) expires_at,
      unnest($7::text[]) about, unnest($9::bigint[]) turn) one)
insert into settle.idempotency_claims
  (identity, service, run, epoch, fingerprint, claimed_at, lease_until, expires_at, about)
select identity, service, run, nextval('settle.claim_epochs'), fingerprint, at, at + lease, expires_at, about
from (select turns.*, (select coalesce($8::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)) at
      from turns where ours) mine
on conflict do nothing
returning identity, run, epoch

-- Before complete_claims and lock_claims. A plan is kept, and one that was made while the table was small would read it as a whole when
-- it has grown. With these the rows are always found by their identities, and locked in that order: two batches never
-- wait for each other. For this transaction only.
-- name: find_by_identity
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true)

-- For a batch that changes rows in more than one way, each way in an order of its own.
-- name: lock_claims
select 1 from settle.idempotency_claims where identity = any ($1::bytea[]) order by identity for no key update

-- All completions of a batch, likewise. "any" bounds what is read, whichever side the plan begins with; what may be large
-- is not carried through the join.
-- name: complete_claims
update settle.idempotency_claims c
set status = ($4::bigint[])[n], headers = ($5::text[])[n], body = ($6::bytea[])[n], response_hash = ($7::bytea[])[n],
  expires_at = greatest(c.expires_at, ($3::bigint[])[n])
from (select unnest($1::bytea[]) identity, unnest($2::text[]) run, generate_subscripts($1::bytea[], 1) n) one
where c.identity = any ($1::bytea[]) and c.identity = one.identity and c.run = one.run and c.status is null
returning one.n as place

-- By the same run or, after the lease, by nobody else: an owner that was slow may still tell what it did. Kept for as
-- long as the claim has promised, if that is longer.
-- name: complete_claim
update settle.idempotency_claims
set status = $4, headers = $5, body = $6, response_hash = $7, expires_at = greatest(expires_at, $3)
where identity = $1 and run = $2 and status is null

-- name: renew_claim
update settle.idempotency_claims
set lease_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint
where identity = $1 and run = $2 and status is null

-- For a claim that comes again: it gets the lease that it asks for, and keeps one that is longer.
-- name: extend_claim
update settle.idempotency_claims
set lease_until = greatest(lease_until,
  coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint)
where identity = $1 and run = $2 and status is null

-- name: release_claim
delete from settle.idempotency_claims where identity = $1 and run = $2 and status is null

-- name: read_claim
select epoch, run, fingerprint, status, headers, body, response_hash,
  lease_until - coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) as lease_left
from settle.idempotency_claims where identity = $1

-- Only from the one that was seen, and only while it is still silent. $8 is the turn of the key, as in claim_keys.
-- name: take_over_claim
with turn as materialized (select pg_advisory_xact_lock($8::bigint) is not null as ours)
update settle.idempotency_claims
set run = $2, epoch = greatest(epoch + 1, nextval('settle.claim_epochs')), expires_at = greatest(expires_at, $6),
  about = coalesce($7, about),
  lease_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint
from turn
where ours and identity = $1 and epoch = $5 and status is null
  and lease_until <= coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
returning epoch

-- name: list_unknown_claims
select identity, service, run, epoch, claimed_at, lease_until, about from settle.idempotency_claims
where status is null
  and lease_until <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
order by lease_until limit $2

-- Of the oldest, those without an answer are looked at again a day later: they stay, and must not be walked over by every
-- sweep until then.
-- name: put_off_open_claims
update settle.idempotency_claims set expires_at = $3 where status is null and identity = any (array(
  select identity from settle.idempotency_claims
  where expires_at <= (select least($1::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint))
  order by expires_at limit $2 for update skip locked))

-- Neither of them early by a clock that is ahead, as forget_expired.
-- name: forget_expired_claims
delete from settle.idempotency_claims where status is not null and identity = any (array(
  select identity from settle.idempotency_claims
  where expires_at <= (select least($1::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint))
  order by expires_at limit $2 for update skip locked))

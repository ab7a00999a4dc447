-- Epochs that were drawn after a backup was made must not come again after it was restored: they go on from the time.
-- name: skip_claim_epochs
select setval('settle.claim_epochs', greatest(nextval('settle.claim_epochs'),
  (extract(epoch from clock_timestamp() + interval '30 days') * 1000000)::bigint)) as next

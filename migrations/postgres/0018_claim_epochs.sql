-- Epochs of claims. A claim that was released or forgotten leaves no row to count from, and no clock is sure to be
-- ahead of the one that its epoch was once read from: so they are drawn here, by whoever has the turn of the key.
-- No cache: numbers that a session had in stock would come after higher ones. Until now epochs were clocks, in
-- microseconds since 1970; a month keeps it above one that was ahead.
create sequence settle.claim_epochs as bigint;
select setval('settle.claim_epochs', greatest(
  (extract(epoch from clock_timestamp() + interval '30 days') * 1000000)::bigint,
  (select coalesce(max(epoch), 0) from settle.idempotency_claims)));

-- What the claimer lets operators see of the request: a JSON object of texts, or empty.
alter table settle.idempotency_claims add column about text not null default '';

-- Of the bug zoo. Only the test library uses it.

-- A second record of one key is dropped, and what its transaction did stays.
-- name: record_key_if_new
insert into settle.idempotency_keys (identity, service, run, fingerprint, answered_at, expires_at, status, headers, body,
  response_hash)
values ($1, $2, $3, $4, $5, case when $11::text is not null and $12::boolean is not null then $6::bigint end, $7, $8, $9, $10)
on conflict (identity) do nothing

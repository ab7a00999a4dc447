-- Requests that were answered: one row per service, caller and key, written in the transaction of their effects.
create table settle_idempotency_keys (
  identity      blob primary key check (length(identity) = 32),  -- SHA-256 of service, caller and key
  service       text not null,                      -- for people; the identity has it too
  run           text not null,                      -- the execution that wrote it
  fingerprint   blob not null,                      -- of what has to be the same when the key comes again; empty: nothing
  answered_at   integer not null,                   -- microseconds since 1970
  expires_at    integer not null,                   -- it may go from then on
  status        integer not null,
  headers       text not null,                      -- JSON array of [name, value]
  body          blob not null,
  response_hash blob not null                       -- SHA-256 of status, headers and body
) strict, without rowid;
create index settle_idempotency_keys_expiry on settle_idempotency_keys (expires_at);

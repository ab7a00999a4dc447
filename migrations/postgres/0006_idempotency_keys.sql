-- Requests that were answered: one row per service, caller and key, written in the transaction of their effects.
create table settle.idempotency_keys (
  identity      bytea primary key check (octet_length(identity) = 32),  -- SHA-256 of service, caller and key
  service       text not null,                      -- for people; the identity has it too
  run           text not null,                      -- the execution that wrote it
  fingerprint   bytea not null,                     -- of what has to be the same when the key comes again; empty: nothing
  answered_at   bigint not null,                    -- microseconds since 1970
  expires_at    bigint not null,                    -- it may go from then on
  status        integer not null,
  headers       text not null,                      -- JSON array of [name, value]
  body          bytea not null,
  response_hash bytea not null                      -- SHA-256 of status, headers and body
);
create index idempotency_keys_expiry on settle.idempotency_keys (expires_at);

-- Requests whose work is done elsewhere: one row per service, caller and key, from the claim on.
create table settle_idempotency_claims (
  identity      blob primary key,   -- SHA-256 of service, caller and key
  service       text not null,      -- for people; the identity has it too
  run           text not null,      -- whose claim it is
  epoch         integer not null,   -- grows with every owner
  fingerprint   blob not null,      -- of what has to be the same when the key comes again; empty: nothing
  claimed_at    integer not null,   -- microseconds since 1970
  lease_until   integer not null,   -- from then on nobody knows whether the work was done, unless there is an answer
  expires_at    integer not null,   -- it may go from then on, if it has an answer. Full hours
  status        integer,            -- the answer; null while there is none
  headers       text,               -- JSON array of [name, value]
  body          blob,
  response_hash blob,               -- SHA-256 of status, headers and body
  check (length(identity) = 32 and (status is null) = (response_hash is null))
) strict, without rowid;
create index settle_idempotency_claims_expiry on settle_idempotency_claims (expires_at);

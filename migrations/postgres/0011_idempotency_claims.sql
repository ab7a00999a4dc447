-- Requests whose work is done elsewhere: one row per service, caller and key, from the claim on.
create table settle.idempotency_claims (
  identity      bytea primary key,  -- SHA-256 of service, caller and key
  service       text not null,      -- for people; the identity has it too
  run           text not null,      -- whose claim it is
  epoch         bigint not null,    -- grows with every owner
  fingerprint   bytea not null,     -- of what has to be the same when the key comes again; empty: nothing
  claimed_at    bigint not null,    -- microseconds since 1970
  lease_until   bigint not null,    -- from then on nobody knows whether the work was done, unless there is an answer
  expires_at    bigint not null,    -- it may go from then on, if it has an answer. Full hours: so the row of an answer
                                    -- is usually the same for every index, and takes the place of the claim's
  status        integer,            -- the answer; null while there is none
  headers       text,               -- JSON array of [name, value]
  body          bytea,
  response_hash bytea,              -- SHA-256 of status, headers and body
  check (octet_length(identity) = 32 and (status is null) = (response_hash is null))
) with (fillfactor = 60);
create index idempotency_claims_expiry on settle.idempotency_claims (expires_at);

-- The webhook inbox: every event that a provider has told us, once. The key on (source, event_id) is what tells
-- a copy from a new one.
create table settle_webhook_events (
  id          integer primary key autoincrement,
  source      text not null,
  event_id    text not null,                        -- the provider's, or what the source was told to take for it
  event_type  text not null,                        -- may be empty
  event_key   text not null,                        -- may be empty: then it is by itself
  provider_at integer,                              -- microseconds since 1970 by the provider's clock; null: unknown
  received_at integer not null,
  newest_only integer not null,                     -- ignored when a later one of its key was applied before
  headers     text not null,                        -- JSON object of strings, or empty
  body        blob not null,                        -- as it came
  status      text not null
              check (status in ('RECEIVED', 'PARKED', 'APPLIED', 'IGNORED', 'STALE', 'TOO_LATE', 'FAILED')),
  attempts    integer not null default 0,           -- how often it has failed
  parks       integer not null default 0,           -- how often it came too early
  waits_since integer not null,                     -- when it was received, or last retried by an operator
  next_at     integer,                              -- when to try it; null: not at all
  last_error  text not null default '',
  finished_at integer,                              -- when it was over; null while somebody has to do something
  unique (source, event_id),
  check ((next_at is not null) = (status in ('RECEIVED', 'PARKED'))),
  check ((finished_at is null) = (status in ('RECEIVED', 'PARKED', 'FAILED')))
) strict;
create index settle_webhook_events_due on settle_webhook_events (source, next_at, id) where next_at is not null;
create index settle_webhook_events_waiting on settle_webhook_events (source, event_key) where finished_at is null;
create index settle_webhook_events_finished on settle_webhook_events (finished_at, id) where finished_at is not null;

-- What events are about. Whoever applies one holds its key's row, so they come one at a time.
create table settle_webhook_keys (
  source     text not null,
  event_key  text not null,
  newest_at  integer,                               -- the latest provider's time that was applied
  touched_at integer not null,
  primary key (source, event_key)
) strict, without rowid;
create index settle_webhook_keys_touched on settle_webhook_keys (touched_at);

-- Up to when events that were received may have been removed. One from before, without a row, may have been
-- applied: it is not run.
create table settle_webhook_horizons (
  source text primary key,
  until  integer not null
) strict, without rowid;

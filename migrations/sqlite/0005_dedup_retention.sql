-- Which records a consumer wrote together, so that they can go together, oldest first, without an index over
-- all of them.
create table settle_processed_batches (
  consumer     text not null,
  id           integer not null,                    -- grows per consumer
  processed_at integer not null,                    -- by the consumer's own clock
  message_ids  text not null,                       -- JSON array
  -- Where they came from, as JSON: [log, highest position, [source, [lane, highest place]…]…]…
  -- A log is a partition of the broker.
  logs         text not null,
  primary key (consumer, id)
) strict, without rowid;

-- Up to where the broker is done with a log for good, as its owners report it now and then.
create table settle_settled_logs (
  consumer text not null,
  log      text not null,
  position integer not null,
  primary key (consumer, log)
) strict, without rowid;

-- The horizon: the highest place whose record has gone. Without a record nobody can tell any more whether
-- a message at or below it is a copy, so it is never run. Lane -1 holds the highest of all lanes.
create table settle_dedup_horizons (
  consumer text not null,
  lane     integer not null,
  log      text not null,
  source   text not null,
  place    text not null,                           -- sorts as first deliveries of a lane come
  primary key (consumer, lane, log, source)
) strict, without rowid;

-- A restore goes on with higher numbers, so that none is used twice; how many it left out.
alter table settle_identity add column numbers_skipped integer not null default 0;

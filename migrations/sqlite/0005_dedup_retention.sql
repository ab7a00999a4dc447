-- Which records a consumer wrote together, so that they can go together, oldest first, without an index over
-- all of them.
create table settle_processed_batches (
  id           integer primary key autoincrement,
  consumer     text not null,
  log          text not null,                       -- the broker's partition that they came from
  position     integer not null,                    -- there, of the last of them
  processed_at integer not null,                    -- by the consumer's own clock
  message_ids  text not null,                       -- JSON array
  origins      text not null                        -- JSON array of [source, lane, highest sequence]
) strict;
create index settle_processed_batches_log on settle_processed_batches (consumer, log);

-- The horizon: the highest sequence whose record has gone. Without a record nobody can tell any more whether
-- a message at or below it is a copy, so it is never run. Lane -1 holds the highest of all lanes.
create table settle_dedup_horizons (
  consumer text not null,
  lane     integer not null,
  log      text not null,
  source   text not null,
  sequence integer not null,
  primary key (consumer, lane, log, source)
) strict, without rowid;

-- A restore goes on with higher numbers, so that none is used twice; how many it left out.
alter table settle_identity add column numbers_skipped integer not null default 0;

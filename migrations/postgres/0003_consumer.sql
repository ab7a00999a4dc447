-- What a consumer has applied, committed together with its effects.
create table settle.processed_events (
  consumer     text not null,
  message_id   text not null,                       -- the deduplication key of the message
  topic        text not null,
  event_type   text not null,
  processed_at bigint not null,                     -- microseconds since 1970
  primary key (consumer, message_id)
);

-- The highest owner's epoch seen per partition: a replaced owner finds a higher one and writes nothing.
create table settle.consumer_fences (
  consumer  text not null,
  partition text not null,
  epoch     bigint not null,
  primary key (consumer, partition)
);

-- Which records a consumer wrote together, so that they can go together, oldest first.
create table settle.processed_batches (
  id           bigint generated always as identity,
  consumer     text not null,
  processed_at bigint not null,
  message_ids  text not null,                       -- JSON array
  -- Where they came from, as JSON: [log, highest position, [source, [lane, highest place]…]…]…
  logs         text not null,
  primary key (consumer, id)
);

-- Up to where the broker is done with a log for good, as its owners report it now and then.
create table settle.settled_logs (
  consumer text not null,
  log      text not null,
  position bigint not null,
  primary key (consumer, log)
);

-- The horizon: the highest place whose record has gone; lane -1 holds the highest of all lanes.
create table settle.dedup_horizons (
  consumer text not null,
  lane     integer not null,
  log      text not null,
  source   text not null,
  place    text collate "C" not null,               -- sorts as first deliveries of a lane come
  primary key (consumer, lane, log, source)
);

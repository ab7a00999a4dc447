-- What a consumer has applied, committed together with its effects.
create table settle_processed_events (
  consumer     text not null,
  message_id   text not null,                       -- the deduplication key of the message
  topic        text not null,
  event_type   text not null,
  processed_at integer not null,
  primary key (consumer, message_id)
) strict, without rowid;

-- The highest owner's epoch seen per partition: a replaced owner finds a higher one and writes nothing.
create table settle_consumer_fences (
  consumer  text not null,
  partition text not null,
  epoch     integer not null,
  primary key (consumer, partition)
) strict, without rowid;

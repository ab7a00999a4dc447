-- Messages that failed wait here, each behind the earlier ones of its key. The broker is done with them: their
-- consumer has claimed them in the transaction that wrote them here, and runs them from here.
create table settle.parked_messages (
  id           bigint generated always as identity primary key,
  consumer     text not null,
  topic        text not null,
  message_key  text not null,                       -- may be empty: such a message waits for itself alone
  single       text not null,                       -- the deduplication key of one without a key, else empty
  attempts     integer not null,                    -- how often it has failed alone
  starts       integer not null default 0,          -- how often it was begun and has not ended: its process died
  first_failed_at bigint,                           -- microseconds since 1970; null: it only waits behind another
  history      text not null,                       -- JSON array: when, class and error of each failed attempt
  log          text not null,                       -- the partition it came from, and where it stood there
  position     bigint not null,
  message_id   text not null,
  source       text not null,
  event_type   text not null,
  subject      text not null,
  content_type text not null,
  event_time   bigint not null,
  extensions   text not null,                       -- JSON object of strings, or empty
  payload      bytea not null
);
create index parked_messages_key on settle.parked_messages (consumer, topic, message_key, single, id);

-- The keys that they wait for: whoever works on a key, or adds to it, holds its row. Those who are to be tried
-- have a time; a key without one waits for an operator.
create table settle.parked_keys (
  consumer    text not null,
  topic       text not null,
  message_key text not null,
  single      text not null,
  next_at     bigint,
  primary key (consumer, topic, message_key, single)
) with (fillfactor = 50);
create index parked_keys_due on settle.parked_keys (consumer, next_at);

-- Whether an owner is at work, and whether the one before it still was when it took over: then that one has not
-- ended well.
alter table settle.consumer_fences add column at_work boolean not null default false;
alter table settle.consumer_fences add column left_open boolean not null default false;

-- What a consumer has given up, with everything that is known about it.
create table settle.dlq_events (
  id               bigint generated always as identity primary key,
  consumer         text not null,
  consumer_version text not null,
  status           text not null default 'NEW'
                   check (status in ('NEW', 'REPLAYING', 'REPLAYED', 'DISCARD_REQUESTED', 'DISCARDED')),
  reason           text not null,                   -- permanent, exhausted, too_old, crashed_process, …
  error            text not null,                   -- the last one
  attempts         integer not null,
  history          text not null,                   -- as in parked_messages
  failed_at        bigint not null,
  blocks_key       boolean not null,                -- later ones of its key wait for it
  replays          integer not null default 0,
  replayed_at      bigint,                          -- when it was last asked for, or ran at last
  topic            text not null,
  message_key      text not null,
  log              text not null,
  position         bigint not null,
  message_id       text not null,
  source           text not null,
  event_type       text not null,
  subject          text not null,
  content_type     text not null,
  event_time       bigint not null,
  extensions       text not null,
  payload          bytea not null
);
create index dlq_events_status on settle.dlq_events (status, id);
create index dlq_events_message on settle.dlq_events (message_id);

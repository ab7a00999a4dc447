-- What guards have moved, in the transactions that moved it.
create table settle_guard_history (
  id         integer primary key autoincrement,
  machine    text not null,
  entity     text not null,      -- the key of the user's row
  from_state text not null,
  to_state   text not null,
  actor      text not null,
  reason     text not null,
  at         integer not null,   -- microseconds since 1970
  event_id   text                -- of the event that was published with it
) strict;
create index settle_guard_history_entity on settle_guard_history (machine, entity, id);

-- What guards have moved, in the transactions that moved it.
create table settle.guard_history (
  id         bigint generated always as identity primary key,
  machine    text not null,
  entity     text not null,      -- the key of the user's row
  from_state text not null,
  to_state   text not null,
  actor      text not null,
  reason     text not null,
  at         bigint not null,    -- microseconds since 1970
  event_id   text                -- of the event that was published with it
);
create index guard_history_entity on settle.guard_history (machine, entity, id);

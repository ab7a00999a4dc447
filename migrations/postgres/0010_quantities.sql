-- Every change of a counted quantity, in the transaction that changed it.
create table settle.quantity_log (
  id        bigint generated always as identity primary key,
  resource  text not null,
  item      text not null,       -- the key of the user's row
  change    bigint not null,     -- zero: a return that was not possible, the reason says why
  after     bigint not null,
  reason    text not null,
  reference text not null,       -- what it was for: an order, a reservation
  at        bigint not null      -- microseconds since 1970
);
create index quantity_log_item on settle.quantity_log (resource, item, id);
create index quantity_log_reference on settle.quantity_log (resource, reference) where reference <> '';

-- Quantities that were taken for the time being, under an id of the caller's. Whoever ends one holds its row.
create table settle.reservations (
  resource   text not null,
  id         text not null,
  status     text not null default 'HELD' check (status in ('HELD', 'CONFIRMED', 'CANCELLED', 'EXPIRED')),
  created_at bigint not null,
  expires_at bigint not null,
  release_at bigint not null,    -- when to give it back: as it expires, or later if that has failed
  ended_at   bigint,
  primary key (resource, id),
  check ((status = 'HELD') = (ended_at is null))
);
create index reservations_due on settle.reservations (resource, release_at) where status = 'HELD';
create index reservations_ended on settle.reservations (resource, ended_at) where status <> 'HELD';

create table settle.reservation_lines (
  resource    text not null,
  reservation text not null,
  item        text not null,
  amount      bigint not null check (amount > 0),
  is_number   boolean not null,  -- whether the caller's key was an integer
  primary key (resource, reservation, item)
);

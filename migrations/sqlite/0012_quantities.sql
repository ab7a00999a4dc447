-- Every change of a counted quantity, in the transaction that changed it.
create table settle_quantity_log (
  id        integer primary key autoincrement,
  resource  text not null,
  item      text not null,       -- the key of the user's row
  change    integer not null,    -- zero: a return that was not possible, the reason says why
  after     integer not null,
  reason    text not null,
  reference text not null,       -- what it was for: an order, a reservation
  at        integer not null     -- microseconds since 1970
) strict;
create index settle_quantity_log_item on settle_quantity_log (resource, item, id);
create index settle_quantity_log_reference on settle_quantity_log (resource, reference) where reference <> '';

-- Quantities that were taken for the time being, under an id of the caller's. Whoever ends one holds its row.
create table settle_reservations (
  resource   text not null,
  id         text not null,
  status     text not null default 'HELD' check (status in ('HELD', 'CONFIRMED', 'CANCELLED', 'EXPIRED')),
  created_at integer not null,
  expires_at integer not null,
  release_at integer not null,   -- when to give it back: as it expires, or later if that has failed
  ended_at   integer,
  primary key (resource, id),
  check ((status = 'HELD') = (ended_at is null))
) strict, without rowid;
create index settle_reservations_due on settle_reservations (resource, release_at) where status = 'HELD';
create index settle_reservations_ended on settle_reservations (resource, ended_at) where status <> 'HELD';

create table settle_reservation_lines (
  resource    text not null,
  reservation text not null,
  item        text not null,
  amount      integer not null check (amount > 0),
  is_number   integer not null,  -- whether the caller's key was an integer
  primary key (resource, reservation, item)
) strict, without rowid;

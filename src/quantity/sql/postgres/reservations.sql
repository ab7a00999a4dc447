-- Reservations: their row decides how they end.

-- Waits for whoever is just inserting the same id, and skips if he commits.
-- name: insert_reservation
insert into settle.reservations (resource, id, created_at, expires_at, release_at) values ($1, $2, $3, $4, $4)
on conflict (resource, id) do nothing

-- name: insert_line
insert into settle.reservation_lines (resource, reservation, item, amount, is_number)
values ($1, $2, $3, $4, $5::integer = 1)

-- name: lock_reservation
select status, expires_at from settle.reservations where resource = $1 and id = $2 for no key update

-- name: read_lines
select item, amount, is_number from settle.reservation_lines where resource = $1 and reservation = $2

-- name: end_reservation
update settle.reservations set status = $3, ended_at = $4 where resource = $1 and id = $2 and status = 'HELD'

-- name: drop_reservation
delete from settle.reservations where resource = $1 and id = $2

-- name: drop_lines
delete from settle.reservation_lines where resource = $1 and reservation = $2

-- For a row that somebody else has locked, in milliseconds; until the end of the transaction.
-- name: wait_at_most
select set_config('lock_timeout', $1::bigint::text, true)

-- name: lock_due
select id from settle.reservations where resource = $1 and status = 'HELD' and release_at <= $2
order by release_at limit $3 for no key update skip locked

-- name: lock_due_one
select id from settle.reservations where resource = $1 and id = $2 and status = 'HELD' and release_at <= $3
for no key update skip locked

-- Whoever has it is ending it.
-- name: postpone_release
update settle.reservations set release_at = $3 where resource = $1 and id = (
  select id from settle.reservations where resource = $1 and id = $2 and status = 'HELD' for no key update skip locked)

-- name: lock_ended
select id from settle.reservations where resource = $1 and status <> 'HELD' and ended_at < $2
order by ended_at limit $3 for update skip locked

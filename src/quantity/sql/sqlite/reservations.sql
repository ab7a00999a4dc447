-- Reservations: their row decides how they end.

-- Nobody else writes meanwhile: there is nothing to lock here.
-- name: insert_reservation
insert into settle_reservations (resource, id, created_at, expires_at, release_at) values ($1, $2, $3, $4, $4)
on conflict (resource, id) do nothing

-- name: insert_line
insert into settle_reservation_lines (resource, reservation, item, amount, is_number)
values ($1, $2, $3, $4, $5)

-- name: lock_reservation
select status, expires_at from settle_reservations where resource = $1 and id = $2

-- name: read_lines
select item, amount, is_number from settle_reservation_lines where resource = $1 and reservation = $2

-- name: end_reservation
update settle_reservations set status = $3, ended_at = $4 where resource = $1 and id = $2 and status = 'HELD'

-- name: drop_reservation
delete from settle_reservations where resource = $1 and id = $2

-- name: drop_lines
delete from settle_reservation_lines where resource = $1 and reservation = $2

-- Whoever gets here waits for no row.
-- name: wait_at_most
select 1 where $1 is not null

-- name: lock_due
select id from settle_reservations where resource = $1 and status = 'HELD' and release_at <= $2
order by release_at limit $3

-- name: lock_due_one
select id from settle_reservations where resource = $1 and id = $2 and status = 'HELD' and release_at <= $3

-- name: postpone_release
update settle_reservations set release_at = $3 where resource = $1 and id = $2 and status = 'HELD'

-- name: lock_ended
select id from settle_reservations where resource = $1 and status <> 'HELD' and ended_at < $2
order by ended_at limit $3

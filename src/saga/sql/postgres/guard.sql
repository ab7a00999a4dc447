-- What participants have done for sagas.

-- The row of the saga itself has its highest epoch; whoever changes it waits for others of this saga, and finds a higher
-- one if there was one.
-- name: raise_guard
insert into settle.saga_guards as g (saga, step, op, by_op, epoch, at) values ($1, '', 0, 0, $2, $3)
on conflict (saga, step, op) do update set epoch = excluded.epoch, at = excluded.at where g.epoch <= excluded.epoch

-- name: add_guard
insert into settle.saga_guards (saga, step, op, by_op, epoch, at) values ($1, $2, $3, $4, $5, $6)
on conflict (saga, step, op) do nothing

-- name: read_guard
select by_op, answer from settle.saga_guards where saga = $1 and step = $2 and op = $3

-- name: record_guard
update settle.saga_guards set answer = $4 where saga = $1 and step = $2 and op = $3

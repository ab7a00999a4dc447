-- There is one writer at a time, so who gets here waits for no row. $4 is for databases where it does. Who comes again
-- with the same epoch, because the answer was lost, is told what it was told then.
-- name: take_over
insert into settle_consumer_fences (consumer, partition, epoch, at_work) select $1, $2, $3, 1 where $4 is not null
on conflict (consumer, partition) do update set epoch = excluded.epoch, at_work = 1,
  left_open = case when epoch = excluded.epoch and at_work then left_open else at_work end
where epoch <= excluded.epoch
returning left_open

-- name: end_work
update settle_consumer_fences set at_work = 0 where consumer = $1 and partition = $2 and epoch = $3

-- Nobody has a session here that could be ended. The error of who waits to write names the process to look at.
-- name: end_stopped_owner
select 0 where $1 is null and $2 is null and $3 is null

-- $2 is a JSON array of the batch's partitions. All of the consumer's are read: they are few, and to take the
-- list apart costs more.
-- name: read_fences
select partition, epoch from settle_consumer_fences where consumer = $1 and $2 is not null

-- name: raise_fence
insert into settle_consumer_fences (consumer, partition, epoch) values ($1, $2, $3)
on conflict (consumer, partition) do update set epoch = excluded.epoch where epoch < excluded.epoch

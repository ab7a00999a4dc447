-- There is one writer at a time, so who gets here waits for no row. $4 is for databases where it does. Who comes again
-- as the same owner $3, because the answer was lost, is told what it was told then.
-- name: take_over
insert into settle_consumer_fences (consumer, partition, epoch, at_work, owner) select $1, $2, 1, 1, $3 where $4 is not null
on conflict (consumer, partition) do update set at_work = 1, owner = excluded.owner,
  epoch = case when owner = excluded.owner then epoch else epoch + 1 end,
  left_open = case when owner = excluded.owner then left_open else at_work end
returning epoch, left_open

-- name: end_work
update settle_consumer_fences set at_work = 0 where consumer = $1 and partition = $2 and epoch = $3

-- Nobody has a session here that could be ended. The error of who waits to write names the process to look at.
-- name: end_stopped_owner
select 0 as pid where $1 is null and $2 is null and $3 is null

-- $2 is a JSON array of the batch's partitions. All of the consumer's are read: they are few, and to take the
-- list apart costs more.
-- name: read_fences
select partition, epoch from settle_consumer_fences where consumer = $1 and $2 is not null

-- name: raise_fence
insert into settle_consumer_fences (consumer, partition, epoch, owner) values ($1, $2, $3, $4)
on conflict (consumer, partition) do update set epoch = excluded.epoch, owner = excluded.owner
where epoch < excluded.epoch

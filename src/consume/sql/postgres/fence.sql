-- A transaction of its own, in one statement: nobody can be stopped in the middle of it. It waits for the batch of
-- the former owner, but not for more than $4 milliseconds; the setting ends with the statement. Who comes again with the
-- same epoch, because the answer was lost, is told what it was told then.
-- name: take_over
insert into settle.consumer_fences as f (consumer, partition, epoch, at_work)
select $1, $2, $3::bigint, true from (select set_config('lock_timeout', $4::bigint::text, true) as waiting) w
where w.waiting is not null
on conflict (consumer, partition) do update set epoch = excluded.epoch, at_work = true,
  left_open = case when f.epoch = excluded.epoch and f.at_work then f.left_open else f.at_work end
where f.epoch <= excluded.epoch
returning left_open::integer

-- name: end_work
update settle.consumer_fences set at_work = false where consumer = $1 and partition = $2 and epoch = $3

-- The session that holds this very row: the transaction in xmax is its own, and no newer owner has committed. One
-- that waits for the row is not in xmax, and one that was prepared has no session. Materialized, because sessions
-- may only be ended after they were chosen.
-- name: end_stopped_owner
with holder as materialized (
  select l.pid from settle.consumer_fences f
  join pg_locks l on l.locktype = 'transactionid' and l.transactionid = f.xmax and l.granted
                 and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
  where f.consumer = $1 and f.partition = $2 and f.epoch < $3)
select pid from holder where pg_terminate_backend(pid, 5000)

-- The rows stay locked until the batch has ended: whoever takes a partition over waits for it, or finds that it
-- never committed. $2 is a JSON array of the batch's partitions.
-- name: read_fences
select partition, epoch from settle.consumer_fences
where consumer = $1 and partition in (select jsonb_array_elements_text($2::jsonb))
order by partition for update

-- name: raise_fence
insert into settle.consumer_fences as f (consumer, partition, epoch) values ($1, $2, $3)
on conflict (consumer, partition) do update set epoch = excluded.epoch where f.epoch < excluded.epoch

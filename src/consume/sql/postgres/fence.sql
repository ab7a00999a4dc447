-- A transaction of its own, in one statement: nobody can be stopped in the middle of it. It waits for the batch of
-- the former owner, but not for more than $4 milliseconds; the setting ends with the statement. Who comes again as the
-- same owner $3, because the answer was lost, is told what it was told then.
-- name: take_over
insert into settle.consumer_fences as f (consumer, partition, epoch, at_work, owner)
select $1, $2, 1, true, $3 from (select set_config('lock_timeout', $4::bigint::text, true) as waiting) w
where w.waiting is not null
on conflict (consumer, partition) do update set at_work = true, owner = excluded.owner,
  epoch = case when f.owner = excluded.owner then f.epoch else f.epoch + 1 end,
  left_open = case when f.owner = excluded.owner then f.left_open else f.at_work end
returning epoch, left_open::integer as left_open

-- name: end_work
update settle.consumer_fences set at_work = false where consumer = $1 and partition = $2 and epoch = $3

-- The session that holds this very row: the transaction in xmax is its own. One
-- that waits for the row is not in xmax, and one that was prepared has no session. Materialized, because sessions
-- may only be ended after they were chosen.
-- name: end_stopped_owner
with holder as materialized (
  select l.pid from settle.consumer_fences f
  join pg_locks l on l.locktype = 'transactionid' and l.transactionid = f.xmax and l.granted
                 and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
  where f.consumer = $1 and f.partition = $2 and f.owner <> $3)
select pid from holder where pg_terminate_backend(pid, 5000)

-- The rows stay locked until the batch has ended: whoever takes a partition over waits for it, or finds that it
-- never committed. $2 is a JSON array of the batch's partitions.
-- name: read_fences
select partition, epoch from settle.consumer_fences
where consumer = $1 and partition in (select jsonb_array_elements_text($2::jsonb))
order by partition for update

-- name: raise_fence
insert into settle.consumer_fences as f (consumer, partition, epoch, owner) values ($1, $2, $3, $4)
on conflict (consumer, partition) do update set epoch = excluded.epoch, owner = excluded.owner
where f.epoch < excluded.epoch

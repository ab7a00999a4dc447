-- Who has taken a shard over writes its epoch here, in a transaction of its own. It waits for a tick of the former owner,
-- for at most $4 milliseconds; the setting ends with the transaction. Equal epochs are written too: that is the
-- conflicting write that waits for a tick of one's own whose end is unknown.
-- name: raise_fence
insert into settle.saga_fences as f (kind, shard, epoch)
select $1, $2, $3 from (select set_config('lock_timeout', $4::bigint::text, true) as waiting) w
where w.waiting is not null
on conflict (kind, shard) do update set epoch = excluded.epoch where f.epoch <= excluded.epoch

-- The rows stay locked until the tick has ended. $2 is a JSON array of shards.
-- name: read_fences
select shard, epoch from settle.saga_fences
where kind = $1 and shard in (select jsonb_array_elements_text($2::jsonb)::smallint) order by shard for update

-- The session that holds this very row: see consume/sql/postgres/fence.sql.
-- name: end_stopped_owner
with holder as materialized (
  select l.pid from settle.saga_fences f
  join pg_locks l on l.locktype = 'transactionid' and l.transactionid = f.xmax and l.granted
                 and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
  where f.kind = $1 and f.shard = $2)
select pid from holder where pg_terminate_backend(pid, 5000)

-- Sagas whose call only the former owner would have had the answer of.
-- name: wake_calling
update settle.sagas set due_at = 0, wakes = wakes + 1 where kind = $1 and shard = $2 and calling

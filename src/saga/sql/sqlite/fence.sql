-- One transaction writes at a time: whoever gets here waits for nobody, and nobody can be ended.
-- name: raise_fence
insert into settle_saga_fences as f (kind, shard, epoch) select $1, $2, $3 where $4 is not null
on conflict (kind, shard) do update set epoch = excluded.epoch where f.epoch <= excluded.epoch

-- name: read_fences
select shard, epoch from settle_saga_fences
where kind = $1 and shard in (select value from json_each($2)) order by shard

-- name: end_stopped_owner
select 0 as pid where $1 is null and $2 is null

-- name: wake_calling
update settle_sagas set due_at = 0, wakes = wakes + 1 where kind = $1 and shard = $2 and calling

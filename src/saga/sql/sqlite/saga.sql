-- name: add_kind
insert into settle_saga_kinds (kind, host, type, version) values ($1, $2, $3, $4) on conflict do nothing

-- name: start_saga
insert into settle_sagas (id, kind, shard, entity_id, input, due_at, deadline_at, created_at, updated_at, origin)
values ($1, $2, $3, $4, $5, $6, $7, $6, $6, $8) on conflict (id) do nothing

-- name: read_start
select kind, entity_id, input from settle_sagas where id = $1

-- name: find_due
select no, id, kind, shard, entity_id, status, wanted, wakes, attempts, calling, created_at, deadline_at, input, last_error, parent_no, origin, due_at
from settle_sagas where kind = $1 and due_at <= $3 and shard in (select value from json_each($2))
order by due_at limit $4

-- name: read_sagas
select no, id, kind, shard, entity_id, status, wanted, wakes, attempts, calling, created_at, deadline_at, input, last_error, parent_no, origin, due_at
from settle_sagas where no in (select value from json_each($1))

-- name: next_due
select min(due_at) as due_at
from (select due_at from settle_sagas
      where kind = $1 and due_at is not null and shard in (select value from json_each($2)) order by due_at limit 1)

-- name: read_journals
select no, n, kind, scope, name, input, input_hash, result, of, at, epoch
from settle_saga_journal where no in (select value from json_each($1)) order by no, n

-- name: add_row
insert into settle_saga_journal (no, n, kind, scope, name, input, input_hash, result, of, at, epoch)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- Whoever has woken it meanwhile, $2 tells, is not overwritten: it is looked at again.
-- name: write_saga
update settle_sagas set status = $3,
  due_at = case when $9 is not null then null when wakes = $2 then $4 else 0 end,
  wanted = case when wakes = $2 then null else wanted end,
  attempts = $5, calling = $6, last_error = $7, result = $8, ended_at = $9, updated_at = $10
where no = $1

-- name: want
update settle_sagas set wanted = $2, due_at = 0, wakes = wakes + 1
where id = $1 and ended_at is null and wanted is null

-- A parent that has not ended may still want to undo its children.
-- name: find_ended
select s.no from settle_sagas s
where s.ended_at < $1
  and not exists (select 1 from settle_sagas p where p.no = s.parent_no and p.ended_at is null)
order by s.ended_at limit $2

-- name: drop_journals
delete from settle_saga_journal where no in (select value from json_each($1))

-- name: drop_mail
delete from settle_saga_mailbox where no in (select value from json_each($1))

-- name: drop_sagas
delete from settle_sagas where no in (select value from json_each($1))

-- name: await_step
select 1 as here

-- name: add_kind
insert into settle.saga_kinds (kind, host, type, version) values ($1, $2, $3, $4) on conflict do nothing

-- Waits for whoever is just starting the same one, and skips if he commits.
-- name: start_saga
insert into settle.sagas (id, kind, shard, entity_id, input, due_at, deadline_at, created_at, updated_at, origin)
values ($1, $2, $3, $4, $5, $6, $7, $6, $6, $8) on conflict (id) do nothing

-- name: read_start
select kind, entity_id, input from settle.sagas where id = $1

-- $2 is a JSON array of shards. The first ones of each shard by the index, and of these the first: a backlog is not read.
-- name: find_due
select d.no, d.id, d.kind, d.shard, d.entity_id, d.status, d.wanted, d.wakes, d.attempts, d.calling, d.created_at, d.deadline_at, d.input,
       d.last_error, d.parent_no, d.origin, d.due_at
from jsonb_array_elements_text($2::jsonb) of_shard
cross join lateral (select * from settle.sagas s
                    where s.kind = $1 and s.shard = of_shard::smallint and s.due_at <= $3
                    order by s.due_at limit $4) d
order by d.due_at limit $4

-- name: read_sagas
select no, id, kind, shard, entity_id, status, wanted, wakes, attempts, calling, created_at, deadline_at, input, last_error, parent_no, origin, due_at
from settle.sagas where no in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: next_due
select min(d.due_at) as due_at
from jsonb_array_elements_text($2::jsonb) of_shard
cross join lateral (select s.due_at from settle.sagas s
                    where s.kind = $1 and s.shard = of_shard::smallint and s.due_at is not null
                    order by s.due_at limit 1) d

-- name: read_journals
select no, n, kind, scope, name, input, input_hash, result, of, at, epoch
from settle.saga_journal where no in (select jsonb_array_elements_text($1::jsonb)::bigint) order by no, n

-- name: add_row
insert into settle.saga_journal (no, n, kind, scope, name, input, input_hash, result, of, at, epoch)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- Whoever has woken it meanwhile, $2 tells, is not overwritten: it is looked at again.
-- name: write_saga
update settle.sagas set status = $3,
  due_at = case when $9::bigint is not null then null when wakes = $2 then $4::bigint else 0 end,
  wanted = case when wakes = $2 then null else wanted end,
  attempts = $5, calling = $6::integer = 1, last_error = $7, result = $8, ended_at = $9, updated_at = $10
where no = $1

-- What an operator asks for. One order at a time: the owner has not done the one before.
-- name: want
update settle.sagas set wanted = $2, due_at = 0, wakes = wakes + 1
where id = $1 and ended_at is null and wanted is null

-- A parent that has not ended may still want to undo its children.
-- name: find_ended
select s.no from settle.sagas s
where s.ended_at < $1
  and not exists (select from settle.sagas p where p.no = s.parent_no and p.ended_at is null)
order by s.ended_at limit $2 for update of s skip locked

-- name: drop_journals
delete from settle.saga_journal where no in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: drop_mail
delete from settle.saga_mailbox where no in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: drop_sagas
delete from settle.sagas where no in (select jsonb_array_elements_text($1::jsonb)::bigint)

-- name: await_step
select 1 as here

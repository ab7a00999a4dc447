-- Sagas that were started by others, and those that have started them. Only its owner writes a saga's journal: a parent
-- reads its children's rows, and both wake each other.

-- $1 is a JSON array of [parent, row of its journal].
-- name: read_children
with wanted as materialized (
  select (x ->> 0)::bigint as parent_no, (x ->> 1)::integer as parent_n from jsonb_array_elements($1::jsonb) x)
select s.parent_no, s.parent_n, s.id, s.status, s.wanted, s.result, s.last_error
from settle.sagas s join wanted w on w.parent_no = s.parent_no and w.parent_n = s.parent_n

-- Whoever writes to sagas of others locks them together with its own, in order. $1: numbers, $2: ids, as JSON arrays.
-- name: lock_sagas
select no from settle.sagas
where no in (select jsonb_array_elements_text($1::jsonb)::bigint)
   or id in (select jsonb_array_elements_text($2::jsonb)::uuid)
order by no for update

-- name: start_child
insert into settle.sagas (id, kind, shard, entity_id, input, due_at, created_at, updated_at, parent_no, parent_n, origin)
values ($1, $2, $3, $4, $5, $6, $6, $6, $7, $8, $9) on conflict (id) do nothing

-- One that has completed goes on; one that is undone already, or was, is left alone. The parent's wish goes before an
-- operator's.
-- name: undo_child
update settle.sagas set wanted = $2, due_at = 0, wakes = wakes + 1, ended_at = null,
  status = case status when 'COMPLETED' then 'COMPENSATING' else status end
where id = $1 and status in ('RUNNING', 'COMPLETED', 'HELD')

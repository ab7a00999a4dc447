-- Sagas that were started by others, and those that have started them. Only its owner writes a saga's journal: a parent
-- reads its children's rows, and both wake each other.

-- $1 is a JSON array of [parent, row of its journal].
-- name: read_children
with wanted as materialized (
  select json_extract(value, '$[0]') as parent_no, json_extract(value, '$[1]') as parent_n from json_each($1))
select s.parent_no, s.parent_n, s.id, s.status, s.wanted, s.result, s.last_error
from settle_sagas s join wanted w on w.parent_no = s.parent_no and w.parent_n = s.parent_n

-- One transaction writes at a time: that is the lock.
-- name: lock_sagas
select no from settle_sagas
where no in (select value from json_each($1)) or id in (select value from json_each($2)) order by no

-- name: start_child
insert into settle_sagas (id, kind, shard, entity_id, input, due_at, created_at, updated_at, parent_no, parent_n, origin)
values ($1, $2, $3, $4, $5, $6, $6, $6, $7, $8, $9) on conflict (id) do nothing

-- One that has completed goes on; one that is undone already, or was, is left alone. The parent's wish goes before an
-- operator's.
-- name: undo_child
update settle_sagas set wanted = $2, due_at = 0, wakes = wakes + 1, ended_at = null,
  status = case status when 'COMPLETED' then 'COMPENSATING' else status end
where id = $1 and status in ('RUNNING', 'COMPLETED', 'HELD')

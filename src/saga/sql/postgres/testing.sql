-- What the test kit looks at.

-- name: read_world
select s.no, s.id, k.type, k.version, s.entity_id, s.status, coalesce(s.last_error, '') as last_error, s.input, s.result,
       s.created_at
from settle.sagas s join settle.saga_kinds k on k.kind = s.kind order by s.no

-- name: next_due_of_all
select min(due_at) as due_at from settle.sagas where due_at is not null

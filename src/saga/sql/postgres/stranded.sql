-- Kinds of sagas with some that are due, and no process that is alive and knows them. Who does is a member of the scope by
-- which it shares them (shard_keeper.hpp). $1: now.
-- name: find_stranded
select k.host, k.type, k.version, count(*) as waiting, min(s.updated_at) as since
from settle.saga_kinds k join settle.sagas s on s.kind = k.kind and s.due_at <= $1
where not exists (
  select from settle.members m
  where m.scope = 'saga.' || k.host || '.' || k.type || '.' || k.version and m.lease_until > $1)
group by k.host, k.type, k.version order by k.host, k.type, k.version

-- Sagas. Those that have not ended are found through the small indexes that hold nothing else: they are due, a call is
-- out, a person is needed, they wait for an event, or for the end of a saga that they have started.

-- At time $1. A process that knows a kind is a member of its scope, see src/saga/shard_keeper.cpp.
-- name: count_open_sagas
with recursive candidates(no) as (
  select no from settle.sagas where due_at is not null
  union select no from settle.sagas where calling
  union select no from settle.sagas where status = 'HELD'
  union select no from settle.saga_waits
  union select s.parent_no from candidates c join settle.sagas s on s.no = c.no where s.parent_no is not null),
found as (select s.kind, s.status, count(*) as sagas, min(s.updated_at) as oldest
          from candidates c join settle.sagas s on s.no = c.no where s.ended_at is null group by s.kind, s.status)
select coalesce(k.host, '') as host, coalesce(k.type, f.kind::text) as type, coalesce(k.version, 0) as version,
       f.status as status, f.sagas as sagas, f.oldest as oldest,
       (select count(*) from settle.members m
        where m.scope = 'saga.' || k.host || '.' || k.type || '.' || k.version::text and m.lease_until > $1) as processes
from found f left join settle.saga_kinds k on k.kind = f.kind order by 1, 2, 3, 4

-- The newest first. $1 statuses as JSON, $2 host, $3 type ('' for any), $4 numbers below this one, $5 how many.
-- name: find_open_sagas
with recursive candidates(no) as (
  select no from settle.sagas where due_at is not null
  union select no from settle.sagas where calling
  union select no from settle.sagas where status = 'HELD'
  union select no from settle.saga_waits
  union select s.parent_no from candidates c join settle.sagas s on s.no = c.no where s.parent_no is not null)
select s.no from candidates c join settle.sagas s on s.no = c.no left join settle.saga_kinds k on k.kind = s.kind
where s.no < $4 and s.status in (select jsonb_array_elements_text($1::jsonb)) and ($2 = '' or k.host = $2) and ($3 = '' or k.type = $3)
order by s.no desc limit $5

-- As above, also of those that have ended.
-- name: find_sagas
select s.no from settle.sagas s left join settle.saga_kinds k on k.kind = s.kind
where s.no < $4 and s.status in (select jsonb_array_elements_text($1::jsonb)) and ($2 = '' or k.host = $2) and ($3 = '' or k.type = $3)
order by s.no desc limit $5

-- As above, of one entity, $6.
-- name: find_sagas_of
select s.no from settle.sagas s left join settle.saga_kinds k on k.kind = s.kind
where s.entity_id = $6 and s.no < $4 and s.status in (select jsonb_array_elements_text($1::jsonb)) and ($2 = '' or k.host = $2)
  and ($3 = '' or k.type = $3)
order by s.no desc limit $5

-- name: find_saga
select no from settle.sagas where id = $1

-- $1 is a JSON array of numbers, $2 the time.
-- name: read_saga_lines
select s.no, s.id, coalesce(k.host, '') as host, coalesce(k.type, s.kind::text) as type,
       coalesce(k.version, 0) as version, s.entity_id, s.status, s.attempts, coalesce(s.last_error, '') as last_error,
       s.due_at, s.calling, s.deadline_at, s.created_at, s.updated_at, s.ended_at,
       coalesce((select j.name from settle.saga_journal j where j.no = s.no and j.name <> '' order by j.n desc limit 1),
                '') as current_step,
       (select count(*) from settle.members m
        where m.scope = 'saga.' || k.host || '.' || k.type || '.' || k.version::text and m.lease_until > $2) as processes
from settle.sagas s left join settle.saga_kinds k on k.kind = s.kind
where s.no in (select jsonb_array_elements_text($1::jsonb)::bigint) order by s.no desc

-- name: read_saga_values
select s.wanted, s.input, s.result, p.id as parent
from settle.sagas s left join settle.sagas p on p.no = s.parent_no where s.no = $1

-- name: read_saga_rows
select n, kind, scope, name, input, result, of, at, epoch from settle.saga_journal where no = $1 order by n

-- Events that were given to it.
-- name: read_saga_mail
select n, event_id from settle.saga_mailbox where no = $1 order by n

-- name: list_saga_hosts
select distinct host from settle.saga_kinds order by host

-- What came of an event: the saga that it was given to.
-- name: find_mail
select m.id, s.id as saga, s.entity_id from settle.saga_mailbox m left join settle.sagas s on s.no = m.no
where m.host = $1 and m.event_id = $2

-- Moves of rows in tables of the user's, whose names stand in the braces.

-- The lock tells the newest state, also if somebody else has just changed it, and keeps it until the end of the
-- transaction. A key that is there twice moves nothing: the caller is told.
-- name: move
with found as (
  select t.{key} as key, t.{column}::text as state from {table} as t where t.{key} = $1 for no key update
),
moved as (
  update {table} as t set {column} = $2{sets}
  from found
  where t.{key} = found.key
    and found.state = any (array(select json_array_elements_text($3::json)))
    and (select count(*) from found) = 1
  returning found.key::text as entity, found.state as before, t.{column}::text as after
),
noted as (
  insert into settle.guard_history (machine, entity, from_state, to_state, actor, reason, at, event_id)
  select $4::text, moved.entity, moved.before, moved.after, $5::text, $6::text, $7::bigint, $8::text from moved
)
select found.key::text as entity, found.state, (select count(*) from moved) as moved from found

-- name: set_state
update {table} as t set {column} = $2{sets} where t.{key} = $1

-- name: note_move
insert into settle.guard_history (machine, entity, from_state, to_state, actor, reason, at, event_id)
values ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: read_history
select entity, from_state, to_state, actor, reason, at, event_id from settle.guard_history
where machine = $1 and entity = $2 order by id limit $3

-- name: probe_table
select t.{key}::text, t.{column}::text, h.id from {table} as t, settle.guard_history as h limit 0

-- An enum without this label refuses it here.
-- name: probe_state
select 1 from {table} as t where t.{column} = $1 limit 0

-- name: count_undeclared
select t.{column}::text as state, count(*) as entities from {table} as t
where t.{column} is null or t.{column}::text <> all (array(select json_array_elements_text($1::json)))
group by t.{column} order by 2 desc, 1 limit 100

-- Moves of rows in tables of the user's, whose names stand in the braces. Columns are always qualified: alone, one
-- that does not exist would be taken for a text.

-- Only tells the state: a statement costs no round trip here, and nobody else writes meanwhile, so the rest follows
-- in set_state and note_move. The parameters are those of PostgreSQL's.
-- name: move
select cast(t.{key} as text) as entity, cast(t.{column} as text) as state, 0 as moved from {table} as t
where t.{key} = $1 and coalesce($2, $3, $4, $5, $6, $7, $8{values}) is not null

-- name: set_state
update {table} as t set {column} = $2{sets} where t.{key} = $1

-- name: note_move
insert into settle_guard_history (machine, entity, from_state, to_state, actor, reason, at, event_id)
values ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: read_history
select entity, from_state, to_state, actor, reason, at, event_id from settle_guard_history
where machine = $1 and entity = $2 order by id limit $3

-- name: probe_table
select t.{key}, t.{column}, h.id from {table} as t, settle_guard_history as h limit 0

-- name: probe_state
select 1 from {table} as t where t.{column} = $1 limit 0

-- name: count_undeclared
select cast(t.{column} as text) as state, count(*) as entities from {table} as t
where t.{column} is null or cast(t.{column} as text) not in (select value from json_each($1))
group by t.{column} order by 2 desc, 1 limit 100

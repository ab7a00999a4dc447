-- Of the bug zoo, with the parameters and columns of move. Only the test library uses it.

-- Without a lock: the state may be another one when it is set.
-- name: look_at_state
select t.{key}::text as entity, t.{column}::text as state, 0 as moved from {table} as t
where t.{key} = $1
  and concat($2::text, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::text) is not null

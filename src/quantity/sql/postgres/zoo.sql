-- Of the bug zoo, with the columns of change_one. Only the test library uses it.

-- Without a lock: there may be less when it is taken.
-- name: read_item
select t.{key}::text as item, t.{column} as there, null::bigint as after from {table} as t where t.{key} = $1

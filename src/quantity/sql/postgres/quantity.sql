-- Counted columns in tables of the user's, whose names stand in the braces.

-- The lock tells the newest amount, also if somebody else has just changed it. The sum is compared as numeric, which
-- does not overflow. A key that is there twice, or a column that is no integer, changes nothing: the caller is told.
-- name: change_one
with found as (
  select t.{key} as key, t.{column} as there from {table} as t where t.{key} = $1 for no key update
),
changed as (
  update {table} as t set {column} = t.{column} + $2::bigint
  from found
  where t.{key} = found.key
    and found.there::numeric + $2::bigint between $3::bigint and $4::bigint
    and pg_typeof(found.there + 0::smallint) in ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
    and (select count(*) from found) = 1
  returning found.key::text as item, t.{column} as after
),
noted as (
  insert into settle.quantity_log (resource, item, change, after, reason, reference, at)
  select $5::text, changed.item, $2::bigint, changed.after, $6::text, $7::text, $8::bigint from changed
)
select found.key::text as item, found.there, (select after from changed) as after from found

-- name: lock_item
select t.{key}::text as item, t.{column} as there from {table} as t where t.{key} = $1 for no key update

-- name: change_item
update {table} as t set {column} = t.{column} + $2::bigint where t.{key} = $1

-- name: log_change
insert into settle.quantity_log (resource, item, change, after, reason, reference, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- Adding a smallint leaves integers what they are, and domains of integers become integers.
-- name: probe
select pg_typeof((select t.{column} + 0::smallint from {table} as t limit 0))::text as type,
       (select t.{key}::text from {table} as t limit 0) as item,
       (select l.item from settle.quantity_log as l limit 0) as logged

-- name: count_below
select count(*) as items from {table} as t where t.{column} < $1::bigint

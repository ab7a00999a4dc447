-- Counted columns in tables of the user's, whose names stand in the braces. Columns are always qualified: alone, one
-- that does not exist would be taken for a text.

-- Only tells the amount: a statement costs no round trip here, and nobody else writes meanwhile, so the rest follows
-- in change_item and log_change. The parameters are those of PostgreSQL's.
-- name: change_one
select cast(t.{key} as text) as item, t.{column} as there, null as after from {table} as t
where t.{key} = $1 and coalesce($2, $3, $4, $5, $6, $7, $8) is not null

-- name: lock_item
select cast(t.{key} as text) as item, t.{column} as there from {table} as t where t.{key} = $1

-- name: change_item
update {table} as t set {column} = t.{column} + $2 where t.{key} = $1

-- name: log_change
insert into settle_quantity_log (resource, item, change, after, reason, reference, at)
values ($1, $2, $3, $4, $5, $6, $7)

-- name: probe
select coalesce((select typeof(t.{column}) from {table} as t where typeof(t.{column}) not in ('integer', 'null') limit 1),
                'integer') as type,
       (select t.{key} from {table} as t limit 0) as item, (select l.item from settle_quantity_log as l limit 0) as logged

-- name: count_below
select count(*) as items from {table} as t where t.{column} < $1

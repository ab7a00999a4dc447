-- What a relay of somebody else's table needs beside the statements that are made from the mapping.

-- name: find_table
select c.oid::bigint as oid
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p')

-- name: list_tables
select n.nspname || '.' || c.relname as name
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema', 'settle')
order by 1 limit 1000

-- A domain is looked at as the type below it.
-- name: list_columns
select a.attname::text as name, format_type(a.atttypid, -1) as type, coalesce(b.typname, t.typname)::text as base,
       case when t.typtype = 'd' then t.typtypmod else a.atttypmod end as modifier, a.attnum as number,
       coalesce((select json_object_agg(e.enumlabel, '') from pg_catalog.pg_enum e
                 where e.enumtypid = coalesce(b.oid, t.oid))::text, '') as labels
from pg_catalog.pg_attribute a
join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_type b on b.oid = t.typbasetype
where a.attrelid = $1::bigint::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- Whether column $2 alone is unique; whether rows that wait can be read in the order of column $3 without the
-- others, $4 being the column that tells them apart or 0; how many numbers a session takes from the sequence
-- behind column $6 of table $5 at a time, and that sequence's name.
-- name: judge_indexes
select coalesce(bool_or(i.indisunique and i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = $2::integer),
                false) as is_unique,
       coalesce(bool_or((i.indkey[0] = $3::integer and ($4::integer = 0 or i.indpred is not null))
                        or ($4::integer > 0 and i.indkey[0] = $4 and i.indkey[1] = $3)), false) as finds_waiting,
       (select q.seqcache from pg_catalog.pg_sequence q
        where q.seqrelid = pg_get_serial_sequence($5, $6)::regclass) as sequence_cache,
       pg_get_serial_sequence($5, $6) as sequence
from pg_catalog.pg_index i
where i.indrelid = $1::bigint::oid and i.indisvalid and i.indislive

-- name: sync_commit
set local synchronous_commit = on

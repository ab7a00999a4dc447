-- Somebody else's outbox table. Its name is a parameter, and what comes back of names is quoted by the server.

-- name: find_table
select c.oid::bigint as oid, format('%I.%I', n.nspname, c.relname) as name, c.relname as plain_name,
       c.relkind::text as kind, c.relpersistence::text as persistence,
       n.nspname = 'settle' as is_ours,
       coalesce((select o.option_value::integer from pg_catalog.pg_options_to_table(c.reloptions) o
                 where o.option_name = 'fillfactor'), 100) as fillfactor,
       exists (select from pg_catalog.pg_options_to_table(c.reloptions) o
               where o.option_name = 'autovacuum_enabled' and o.option_value in ('false', 'off', 'no', '0')) as autovacuum_off
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = coalesce(to_regclass($1), to_regclass(quote_ident($1)))

-- name: table_columns
select a.attname as name, quote_ident(a.attname) as quoted, format_type(a.atttypid, a.atttypmod) as type,
       a.attnotnull as not_null,
       coalesce(pg_get_expr(d.adbin, d.adrelid), '') as default_value,
       a.attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid) ~ '^nextval\(', false) as is_counted,
       coalesce(s.seqcache, 1) as sequence_cache, coalesce(s.seqrelid::regclass::text, '') as sequence
from pg_catalog.pg_attribute a
left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_catalog.pg_sequence s
  on s.seqrelid = pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- One row per column of a usable index, in order; an expression has no name. Whether it is for a part of the
-- table that column $2 decides on.
-- name: table_indexes
select i.indexrelid::bigint as index, i.indisprimary as is_primary, i.indisunique as is_unique,
       coalesce(pg_get_expr(i.indpred, i.indrelid), '') as predicate,
       coalesce(a.attname, '') as column_name,
       exists (select from pg_catalog.pg_depend d
               join pg_catalog.pg_attribute p on p.attrelid = d.refobjid and p.attnum = d.refobjsubid
               where d.objid = i.indexrelid and d.classid = 'pg_class'::regclass and i.indpred is not null
                 and d.refobjid = i.indrelid and p.attname = $2) as decided_by_status
from pg_catalog.pg_index i
cross join lateral unnest(i.indkey) with ordinality k(number, at)
left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number and k.number > 0
where i.indrelid = $1::oid and i.indisvalid and k.at <= i.indnkeyatts
order by i.indexrelid, k.at

-- name: table_activity
select coalesce(sum(s.n_live_tup), 0)::bigint as live, coalesce(sum(s.n_dead_tup), 0)::bigint as dead,
       coalesce(sum(s.n_tup_ins), 0)::bigint as inserted, coalesce(sum(s.n_tup_upd), 0)::bigint as updated,
       coalesce(sum(s.n_tup_hot_upd), 0)::bigint as updated_in_place, coalesce(sum(s.n_tup_del), 0)::bigint as deleted,
       max(greatest(s.last_vacuum, s.last_autovacuum)) as vacuumed_at,
       coalesce(sum(pg_relation_size(s.relid)), 0)::bigint as bytes,
       coalesce((select sum(w.avg_width) from pg_catalog.pg_stats w, pg_catalog.pg_class c
                 join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                 where c.oid = $1::oid and w.schemaname = n.nspname and w.tablename = c.relname
                   and not w.inherited), 0)::bigint as row_bytes
from pg_catalog.pg_stat_all_tables s
where s.relid = $1::oid or s.relid in (select t.relid from pg_partition_tree($1::oid) t)

-- name: notifying_triggers
select quote_ident(t.tgname) as name, p.oid::regprocedure::text as function
from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid
where t.tgrelid = $1::oid and not t.tgisinternal and t.tgenabled <> 'D'
  and p.prosrc ~* '(\mpg_notify\M|\mnotify\M)'
order by 1

-- name: logical_slots
select count(*) as slots from pg_catalog.pg_replication_slots
where slot_type = 'logical' and database = current_database()

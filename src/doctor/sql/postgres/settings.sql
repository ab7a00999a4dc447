-- What is in force here, and who said so.
-- name: session_settings
select name, setting, source from pg_catalog.pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation',
               'default_transaction_read_only', 'autovacuum', 'track_counts')

-- What databases and roles say for themselves, and the statement that takes it back.
-- name: scoped_settings
select split_part(c, '=', 1) as name, substr(c, strpos(c, '=') + 1) as setting,
       case when r.oid is null and d.oid is null then 'all roles'
            when r.oid is null then format('database %I', d.datname)
            when d.oid is null then format('role %I', r.rolname)
            else format('role %I in database %I', r.rolname, d.datname) end as scope,
       case when r.oid is null and d.oid is null then 'alter role all'
            when r.oid is null then format('alter database %I', d.datname)
            when d.oid is null then format('alter role %I', r.rolname)
            else format('alter role %I in database %I', r.rolname, d.datname) end
         || format(' reset %I;', split_part(c, '=', 1)) as fix
from pg_catalog.pg_db_role_setting s
left join pg_catalog.pg_database d on d.oid = s.setdatabase
left join pg_catalog.pg_roles r on r.oid = s.setrole,
unnest(s.setconfig) c
where s.setdatabase = 0 or d.datname = current_database()
order by 3, 1

-- Who keeps vacuum from removing what is dead, and log files from being recycled. Ages are microseconds, or
-- transactions where only those are known.

-- Sessions of other databases do not hold back vacuum in this one. $1: only transactions older than this.
-- name: old_transactions
select a.pid, coalesce(a.usename, '') as user, coalesce(a.application_name, '') as program,
       coalesce(host(a.client_addr), 'this host') as host,
       coalesce(a.state, '') as state,
       (extract(epoch from clock_timestamp() - a.xact_start) * 1000000)::bigint as age,
       age(case when age(a.backend_xid) > age(a.backend_xmin) then a.backend_xid
                else coalesce(a.backend_xmin, a.backend_xid) end) as transactions,
       left(coalesce(a.query, ''), 120) as statement
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
  and a.xact_start < clock_timestamp() - $1::float8 * interval '1 microsecond'
order by a.xact_start limit 10

-- A standby tells its oldest snapshot through its sender, or through its slot where it has one.
-- name: standby_horizons
select coalesce(r.application_name, '') as program, coalesce(host(r.client_addr), 'this host') as host,
       age(r.backend_xmin) as transactions, '' as slot
from pg_catalog.pg_stat_replication r where age(r.backend_xmin) > $1::integer
union all
select s.slot_name, '', age(s.xmin), s.slot_name
from pg_catalog.pg_replication_slots s where s.active and s.slot_type = 'physical' and age(s.xmin) > $1::integer
limit 10

-- A prepared transaction has no process. Its locks are known by the virtual transaction that also holds the lock
-- of its transaction id.
-- name: prepared_transactions
select p.gid, quote_literal(p.gid) as quoted_gid, p.owner,
       (extract(epoch from clock_timestamp() - p.prepared) * 1000000)::bigint as age, age(p.transaction) as transactions,
       coalesce((select string_agg(distinct c.oid::regclass::text, ', ')
                 from pg_catalog.pg_locks x
                 join pg_catalog.pg_locks l on l.virtualtransaction = x.virtualtransaction and l.pid is null
                 join pg_catalog.pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
                 where x.locktype = 'transactionid' and x.pid is null and x.transactionid = p.transaction
                   and l.locktype = 'relation'), '') as tables
from pg_catalog.pg_prepared_xacts p
where p.database = current_database()
  and p.prepared < clock_timestamp() - $1::float8 * interval '1 microsecond'
order by p.prepared limit 10

-- name: idle_slots
select s.slot_name as slot, quote_literal(s.slot_name) as quoted_slot, s.slot_type as type,
       coalesce(s.database, '') as database,
       coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
                                     else pg_current_wal_lsn() end, s.restart_lsn)::bigint, 0) as log_bytes,
       age(s.xmin) as row_transactions, age(s.catalog_xmin) as catalog_transactions,
       coalesce(s.wal_status, '') as wal_status, coalesce(s.database = current_database(), true) as is_here
from pg_catalog.pg_replication_slots s
where not s.active and not s.temporary
  and (s.restart_lsn is not null or s.xmin is not null or s.catalog_xmin is not null)
order by 5 desc limit 10

-- Without these rights the sessions of others are there, but say nothing.
-- name: sees_sessions
select pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees, quote_ident(current_user) as role

-- A second node waits here until the first has committed or given up. The number is Settle's own.
-- name: lock_migrations
select pg_advisory_xact_lock(6012365814390177611)

-- name: create_migration_schema
create schema if not exists settle

-- name: create_migration_table
create table if not exists settle.migrations (
  number     integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at bigint not null
)

-- Asked of the catalogue, because a role without rights on the schema may ask too.
-- name: migration_table_exists
select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relname = 'migrations'

-- name: read_migrations
select number, name, checksum from settle.migrations order by number

-- name: record_migration
insert into settle.migrations (number, name, checksum, applied_at) values ($1, $2, $3, $4)

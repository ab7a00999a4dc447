-- The write transaction itself is the lock on SQLite: a second node waits in BEGIN IMMEDIATE.
-- name: lock_migrations
select 1

-- SQLite has no schemas; names begin with settle_.
-- name: create_migration_schema
select 1

-- name: create_migration_table
create table if not exists settle_migrations (
  number     integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at integer not null
) strict

-- name: migration_table_exists
select 1 from sqlite_master where type = 'table' and name = 'settle_migrations'

-- name: read_migrations
select number, name, checksum from settle_migrations order by number

-- name: record_migration
insert into settle_migrations (number, name, checksum, applied_at) values ($1, $2, $3, $4)

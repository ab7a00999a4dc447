-- Which database this is.

-- Asked of the catalogue, because a role without rights on the schema may ask too.
-- name: find_outbox
select count(*) as found
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relname = 'outbox'

-- The cluster that the outbox was written on.
-- name: read_cluster
select system_identifier, timeline from settle.identity

-- name: read_database_id
select database_id from settle.identity

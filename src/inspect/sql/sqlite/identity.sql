-- Which database this is.

-- name: find_outbox
select count(*) as found from sqlite_master where type = 'table' and name = 'settle_outbox'

-- A file belongs to no cluster.
-- name: read_cluster
select null as system_identifier, null as timeline

-- name: read_database_id
select database_id from settle_identity

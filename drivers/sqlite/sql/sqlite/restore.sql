-- Changes in a restored copy before anybody uses it.

-- name: raise_generation
update settle_identity set generation = generation + 1 returning generation

-- The broker's copy may be older than the service's: publish everything that is left again.
-- name: rewind_outbox
update settle_shares set position = 0, owner = null, epoch = epoch + 1, lease_until = 0 where scope = 'outbox'

-- name: forget_members
delete from settle_members

-- name: renew_broker_id
update broker_identity set broker_id = lower(hex(randomblob(16)))

-- name: free_partitions
update settle_shares set owner = null, epoch = epoch + 1, lease_until = 0

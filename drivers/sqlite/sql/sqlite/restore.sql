-- Changes in a restored copy before anybody uses it.

-- name: raise_generation
update settle_identity set generation = generation + 1 returning generation

-- The broker's copy may be older than the service's: publish everything that is left again. The owner is somebody who
-- has not given the shares back: relays are to know that all of it may have been sent before.
-- name: rewind_outbox
update settle_shares set position = 0, owner = 'restored', epoch = epoch + 1, lease_until = 0 where scope = 'outbox'

-- name: forget_members
delete from settle_members

-- name: renew_broker_id
update broker_identity set broker_id = lower(hex(randomblob(16)))

-- name: free_partitions
update settle_shares set owner = null, epoch = epoch + 1, lease_until = 0

-- An outbox that was never written to has no counter yet.
-- name: make_outbox_counter
insert into sqlite_sequence (name, seq)
select 'settle_outbox', 0 where not exists (select 1 from sqlite_sequence where name = 'settle_outbox')

-- name: skip_numbers
update settle_identity set numbers_skipped = numbers_skipped + $1 -
  (select seq from sqlite_sequence where name = 'settle_outbox')
where $1 > (select seq from sqlite_sequence where name = 'settle_outbox')

-- Places of held events are drawn above what was used before, too.
-- name: set_tick
update settle_outbox_tick set seq_high = max(seq_high, $1)

-- name: set_outbox_number
update sqlite_sequence set seq = max(seq, $1) where name = 'settle_outbox'

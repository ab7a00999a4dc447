-- $4 is the clock of this process: on one machine there is one. $5 is for databases where a row can be waited for.
--
-- The same owner asks again when it does not know whether its first call committed: then the lock is its own, in the
-- same epoch. No ttl is longer than a day: a lock that is held for longer is from before the clock was set back.
-- name: acquire
insert into settle_locks as l (name, owner, epoch, held_until) select $1, $2, 1, $4 + $3 where $5 is not null
on conflict (name) do update
set owner = excluded.owner,
    epoch = l.epoch + (l.owner <> excluded.owner or l.held_until = 0),
    held_until = excluded.held_until
where l.held_until <= $4 or l.held_until > $4 + 86400000000 or l.owner = excluded.owner
returning 1 as acquired, owner, epoch, held_until

-- name: read_holder
select owner, epoch, held_until from settle_locks where name = $1 and held_until > $2

-- One that has expired is still its owner's as long as nobody has taken it.
-- name: renew
update settle_locks set held_until = $5 + $4 where name = $1 and owner = $2 and epoch = $3 and held_until > 0

-- The owner stays in the row, so that a repeated release finds that it was done.
-- name: release
update settle_locks set held_until = 0 where name = $1 and owner = $2 and epoch = $3

-- The transaction holds the only write lock there is.
-- name: check_fence
select 1 from settle_locks where name = $1 and owner = $2 and epoch = $3 and held_until > 0

-- name: raise_fence
insert into settle_lock_fences as f (resource, owner, epoch) values ($1, $2, $3)
on conflict (resource) do update set epoch = excluded.epoch, owner = excluded.owner
where f.epoch < excluded.epoch or (f.epoch = excluded.epoch and f.owner = excluded.owner)

-- For operators: a lock, and whether its time is over.
-- name: list_locks
select name, owner, epoch, held_until, (held_until <= $4) as expired
from settle_locks where name > $1 and ($2 or held_until > 0) order by name limit $3

-- name: find_lock
select name, owner, epoch, held_until, (held_until <= $2) as expired
from settle_locks where name = $1

-- Raised as by a take-over, so that the former owner matches nothing any more; nobody has it then.
-- name: take_away
update settle_locks set owner = $4, epoch = epoch + 1, held_until = 0
where name = $1 and owner = $2 and epoch = $3 and held_until > 0

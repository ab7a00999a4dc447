-- The server's clock decides: it is the one that all processes share. $4 would be another one, and is null.
--
-- A lock that is visibly held is not touched: who tries it waits for nobody and writes nothing. Otherwise the row is
-- waited for, at most $5 milliseconds (the setting ends with the statement), because its former owner may be in the
-- middle of a fenced transaction. No row comes back if somebody else was faster.
--
-- The same owner asks again when it does not know whether its first call committed: then the lock is its own, in the
-- same epoch.
-- name: acquire
with waiting as materialized (select set_config('lock_timeout', $5::bigint::text, true) as at_most),
held as materialized (
  select owner, epoch, held_until from settle.locks
  where name = $1 and owner <> $2
    and held_until > coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)),
taken as (
  insert into settle.locks as l (name, owner, epoch, held_until)
  select $1, $2, 1, coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint
  from waiting where at_most is not null and not exists (select from held)
  on conflict (name) do update
  set owner = excluded.owner,
      epoch = l.epoch + (l.owner <> excluded.owner or l.held_until = 0)::integer,
      held_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $3::bigint
  where l.held_until <= coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
     or l.owner = excluded.owner
  returning owner, epoch, held_until)
select 1 as acquired, owner, epoch, held_until from taken
union all
select 0, owner, epoch, held_until from held

-- name: read_holder
select owner, epoch, held_until from settle.locks
where name = $1 and held_until > coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)

-- One that has expired is still its owner's as long as nobody has taken it.
-- name: renew
update settle.locks
set held_until = coalesce($5::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint) + $4::bigint
where name = $1 and owner = $2 and epoch = $3 and held_until > 0

-- The owner stays in the row, so that a repeated release finds that it was done.
-- name: release
update settle.locks set held_until = 0 where name = $1 and owner = $2 and epoch = $3

-- A take-over changes the epoch, which is part of a key, and waits for this transaction; a renewal passes.
-- name: check_fence
select 1 from settle.locks where name = $1 and owner = $2 and epoch = $3 and held_until > 0 for key share

-- name: raise_fence
insert into settle.lock_fences as f (resource, owner, epoch) values ($1, $2, $3)
on conflict (resource) do update set epoch = excluded.epoch, owner = excluded.owner
where f.epoch < excluded.epoch or (f.epoch = excluded.epoch and f.owner = excluded.owner)

-- For operators: a lock, and whether its time is over.
-- name: list_locks
select name, owner, epoch, held_until, (held_until <= coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint))::integer as expired
from settle.locks where name > $1 and ($2::boolean or held_until > 0) order by name limit $3

-- name: find_lock
select name, owner, epoch, held_until, (held_until <= coalesce($2::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint))::integer as expired
from settle.locks where name = $1

-- Raised as by a take-over, so that the former owner matches nothing any more; nobody has it then.
-- name: take_away
update settle.locks set owner = $4, epoch = epoch + 1, held_until = 0
where name = $1 and owner = $2 and epoch = $3 and held_until > 0

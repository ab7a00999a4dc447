-- Fenced ownership of numbered shares. A share's row is never deleted and its epoch only grows, so an
-- owner that was replaced can never match its row again.

-- name: add_share
insert into settle_shares (scope, share) values ($1, $2) on conflict do nothing

-- name: renew_member
insert into settle_members (scope, member, lease_until) values ($1, $2, $3)
on conflict (scope, member) do update set lease_until = excluded.lease_until

-- name: forget_dead_members
delete from settle_members where scope = $1 and (lease_until <= $2 or lease_until > $3)

-- Those that are believed alive, and those that still hold something under a lease.
-- name: list_other_members
select member from settle_members where scope = $1 and member <> $2
union
select owner from settle_shares where scope = $1 and owner <> $2 and lease_until > 0

-- name: end_leases_of
update settle_shares set lease_until = 0 where scope = $1 and owner = $2

-- name: remove_member
delete from settle_members where scope = $1 and member = $2

-- With the number of members that are alive: their leases end after $2 and up to $3.
-- name: read_shares
select share, position, owner, epoch, lease_until,
       (select count(*) from settle_members where scope = $1 and lease_until > $2 and lease_until <= $3) as members_alive
from settle_shares where scope = $1 order by share

-- name: claim_share
update settle_shares set owner = $3, epoch = epoch + 1, lease_until = $4
where scope = $1 and share = $2 and (owner is null or lease_until <= $5 or lease_until > $6)
returning epoch, position

-- All that are left after what is too much was released.
-- name: renew_shares
update settle_shares set lease_until = $3 where scope = $1 and owner = $2

-- $5 is null, or a word that is no member: then the next owner is to know that it has not all been given back.
-- name: release_share
update settle_shares set owner = $5, lease_until = 0
where scope = $1 and share = $2 and owner = $3 and epoch = $4

-- The fence: no row changes unless the share is still owned in this epoch.
-- name: advance_share
update settle_shares
set position = $5,
    failures = case when position = $5 then failures else 0 end,
    last_error = case when position = $5 then last_error end
where scope = $1 and share = $2 and owner = $3 and epoch = $4

-- name: confirm_shares
select share, epoch from settle_shares where scope = $1 and owner = $2 order by share

-- name: note_share_failure
update settle_shares set failures = failures + 1, last_error = $5
where scope = $1 and share = $2 and owner = $3 and epoch = $4

-- What /metrics reads of a service's database on a server. None of these touches a payload.

-- name: count_relays
select count(*) from settle.members where scope = 'outbox' and lease_until > $1

-- How much waits in the outbox, and who works on it. No payload is touched.

-- Settings of the planner for this transaction; there are none here.
-- name: plan_for_counting
select 1

-- Per share: how many events wait, and since when. Begins at the position of the slowest share, so the
-- published ones before it are not visited. $1: only events up to this sequence number.
-- name: read_waiting
select o.lane & 15 as share, count(*) as waiting, min(o.created_at) as oldest
from settle_outbox o
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
where o.seq > coalesce((select min(position) from settle_shares where scope = 'outbox'), 0)
  and o.seq <= $1 and o.seq > coalesce(s.position, 0)
group by 1

-- Up to number $1, at time $2: how many wait to be tried again, how many for their time, how many were given up; and
-- since when the first ones wait.
-- name: count_held
select count(*) filter (where status = 'WAITING' and (blocks or attempts > 0 or next_at <= $2)) as waiting,
       count(*) filter (where status = 'WAITING' and not blocks and attempts = 0 and next_at > $2) as delayed,
       count(*) filter (where status = 'FAILED') as failed,
       min(created_at) filter (where status = 'WAITING' and (blocks or attempts > 0 or next_at <= $2)) as oldest
from settle_outbox_held where seq <= $1

-- Everything up to here was committed; numbers are never reused, and only a restore leaves some out.
-- name: read_outbox_total
select coalesce((select seq from sqlite_sequence where name = 'settle_outbox'), 0) as highest, numbers_skipped as skipped
from settle_identity

-- Shares that have failed since they last moved.
-- name: read_failing_shares
select share, failures, coalesce(last_error, '') as last_error from settle_shares
where scope = 'outbox' and failures > 0 order by share

-- name: count_relays
select (select count(*) from settle_members where scope = 'outbox' and lease_until > $1) as alive,
       (select count(*) from settle_shares where scope = 'outbox' and owner is not null and lease_until > $1) as shares_owned

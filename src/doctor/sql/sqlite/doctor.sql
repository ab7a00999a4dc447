-- The same questions on SQLite.

-- What waits, per share, among the first $1 rows behind the slowest share, and the key that most of them have.
-- name: waiting_events
with waiting as (
  select o.lane & 15 as share, o.aggregate_id as key, count(*) as events, min(o.created_at) as oldest
  from (select seq, lane, aggregate_id, created_at from settle_outbox
        where seq > coalesce((select min(position) from settle_shares where scope = 'outbox'), 0)
        order by seq limit $1) o
  left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
  where o.seq > coalesce(s.position, 0)
  group by 1, 2)
select share, sum(events) as events, min(oldest) as oldest,
       (select k.key from waiting k where k.share = w.share order by k.events desc limit 1) as key,
       max(events) as events_of_key
from waiting w group by share order by 2 desc

-- name: live_relays
select count(*) as alive from settle_members where scope = 'outbox' and lease_until > $1

-- name: failing_shares
select share, failures, coalesce(last_error, '') as last_error from settle_shares
where scope = 'outbox' and failures > 0 order by failures desc, share

-- Other programs should not write to these files, so there is no statement to hand out.
-- name: failed_events
select h.topic, h.event_type, h.aggregate_id, h.attempts, coalesce(h.last_error, '') as last_error,
       h.next_at as failed_at, count(*) over () as events, '' as fix
from settle_outbox_held h where h.status = 'FAILED' order by h.next_at, h.seq limit 1

-- name: quick_check
select quick_check as problem from pragma_quick_check(10)

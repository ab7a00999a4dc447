-- Both halves of the view have the same types now. As they had not, PostgreSQL worked out every column of every row first,
-- published_at among them, which looks at every note of progress.
create or replace view settle.outbox_events as
select o.seq as id, o.topic, o.aggregate_type, o.aggregate_id, o.event_type, o.event_id, o.payload, o.headers,
       to_timestamp(o.created_at / 1000000.0) as created_at,
       case when h.status = 'FAILED' then 'FAILED' when h.seq is null and passed.yes then 'PUBLISHED'
            else 'PENDING' end as status,
       case when h.seq is null and passed.yes then
         (select to_timestamp(min(p.at) / 1000000.0) from settle.outbox_progress p
          join settle.outbox_ticks t on t.n = p.tick left join settle.outbox_ticks u on u.n = p.upto and p.upto > 0
          where (p.shares >> (o.lane & 15)) & 1 = 1
            and (pg_visible_in_snapshot(o.xid, t.snap)
                 or (o.seq <= p.position and pg_visible_in_snapshot(o.xid, u.snap)))) end as published_at,
       coalesce(h.attempts, s.failures, 0) as attempts, coalesce(h.last_error, s.last_error) as last_error,
       to_timestamp(o.deliver_at / 1000000.0) as deliver_at
from settle.outbox o
join settle.outbox_cursors c on c.share = (o.lane & 15)
join settle.outbox_ticks done on done.n = c.tick
left join settle.outbox_ticks upto on upto.n = c.upto and c.upto > 0
-- The number counts as well: after a restore new rows have transaction ids that old ticks would show.
cross join lateral (select (o.seq <= done.seq_high and pg_visible_in_snapshot(o.xid, done.snap))
                        or coalesce(o.seq <= c.position and pg_visible_in_snapshot(o.xid, upto.snap), false)) passed(yes)
left join settle.outbox_held h on h.seq = o.seq
left join settle.shares s on s.scope = 'outbox' and s.share = c.share and not passed.yes
union all
select h.seq, h.topic, h.aggregate_type, h.aggregate_id, h.event_type, h.event_id, h.payload, h.headers,
       to_timestamp(h.created_at / 1000000.0), case h.status when 'FAILED' then 'FAILED' else 'PENDING' end,
       null::timestamptz, h.attempts::bigint, h.last_error, null::timestamptz
from settle.outbox_held h where not exists (select from settle.outbox o where o.seq = h.seq);

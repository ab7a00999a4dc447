-- The view of the outbox at a price that does not depend on how many notes of progress are kept: the note that first
-- covered an event is looked up. SQLite reads the newest rows from the end, and works out only the columns that are asked
-- for, if the columns of both halves have the same affinity: hence the + signs and the cast.
drop view settle_outbox_events;
create view settle_outbox_events as
select o.seq as id, o.topic, o.aggregate_type, o.aggregate_id, o.event_type, o.event_id, o.payload,
       o.headers, o.created_at,
       case when h.status = 'FAILED' then 'FAILED'
            when h.seq is null and o.seq <= s.position then 'PUBLISHED' else 'PENDING' end as status,
       case when h.seq is null and o.seq <= s.position then
         (select p.at from settle_outbox_progress p
          where p.position >= o.seq and (p.shares >> (o.lane & 15)) & 1 order by p.position, p.id limit 1) end as published_at,
       -- of a share whose destination fails only the first waiting row has been tried
       case when h.seq is not null then h.attempts
            when s.failures > 0 and o.seq = (select min(w.seq) from settle_outbox w
                                             where w.seq > s.position and (w.lane & 15) = s.share)
            then s.failures else 0 end as attempts,
       case when h.seq is not null then h.last_error
            when s.failures > 0 and o.seq = (select min(w.seq) from settle_outbox w
                                             where w.seq > s.position and (w.lane & 15) = s.share)
            then s.last_error end as last_error,
       o.deliver_at
from settle_outbox o
left join settle_outbox_held h on h.seq = o.seq
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
union all
select h.seq, h.topic, h.aggregate_type, h.aggregate_id, h.event_type, h.event_id, h.payload, h.headers,
       h.created_at, case when h.status = 'FAILED' then 'FAILED' else 'PENDING' end, null, +h.attempts, +h.last_error,
       cast(null as integer)
from settle_outbox_held h where not exists (select 1 from settle_outbox o where o.seq = h.seq);

-- Events that their window has passed and that are not out yet: the broker has refused them, they wait behind one
-- of their key that it has refused, or their time has not come. Copied here, so that nobody else waits for them.

alter table settle_outbox add column deliver_at integer; -- not before; null: at once

create table settle_outbox_held (
  seq            integer primary key,               -- as in settle_outbox
  tick           integer not null,
  lane           integer not null,
  event_id       text not null,
  topic          text not null,
  event_type     text not null,
  aggregate_type text not null,
  aggregate_id   text not null,
  content_type   text not null,
  headers        text not null,
  created_at     integer not null,
  status         text not null check (status in ('WAITING', 'FAILED')),
  blocks         integer not null,                  -- later ones of its key wait for it
  attempts       integer not null,
  next_at        integer not null,                  -- when to try again; FAILED: since when it is
  last_error     text,
  place          text,                              -- fixed before it is sent; see consume/retention.hpp
  payload        blob not null
) strict;
create index settle_outbox_held_key on settle_outbox_held (lane, aggregate_id, tick, seq) where blocks;
create index settle_outbox_held_due on settle_outbox_held (next_at) where not blocks;

alter table settle_identity add column places_drawn integer not null default 0;

drop view settle_outbox_events;
create view settle_outbox_events as
select o.seq as id, o.topic, o.aggregate_type, o.aggregate_id, o.event_type, o.event_id, o.payload,
       o.headers, o.created_at,
       case when h.status = 'FAILED' then 'FAILED'
            when h.seq is null and o.seq <= s.position then 'PUBLISHED' else 'PENDING' end as status,
       case when h.seq is null and o.seq <= s.position then
         (select min(p.at) from settle_outbox_progress p
          where p.position >= o.seq and (p.shares >> (o.lane & 15)) & 1) end as published_at,
       -- of a share whose destination fails only the first waiting row has been tried
       case when h.seq is not null then h.attempts when o.seq = f.seq then s.failures else 0 end as attempts,
       case when h.seq is not null then h.last_error when o.seq = f.seq then s.last_error end as last_error,
       o.deliver_at
from settle_outbox o
left join settle_outbox_held h on h.seq = o.seq
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
left join (select t.share, (select min(w.seq) from settle_outbox w
                            where w.seq > t.position and (w.lane & 15) = t.share) as seq
           from settle_shares t where t.scope = 'outbox' and t.failures > 0) f on f.share = s.share
union all
select h.seq, h.topic, h.aggregate_type, h.aggregate_id, h.event_type, h.event_id, h.payload, h.headers,
       h.created_at, case when h.status = 'FAILED' then 'FAILED' else 'PENDING' end, null, h.attempts, h.last_error,
       null
from settle_outbox_held h where not exists (select 1 from settle_outbox o where o.seq = h.seq);

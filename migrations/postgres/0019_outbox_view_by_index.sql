-- The view of the outbox at a price that does not depend on how many ticks and notes of progress are kept: the tick that
-- first showed an event, and the note that first covered it, are looked up. And its newest rows are read from the end, by
-- the indexes on seq: PostgreSQL does that for a view of two halves only if each of them reads a single table, so the
-- rest is asked for in subqueries.

-- One more entry per tick, and one per note of progress; none per event.
create index outbox_ticks_high on settle.outbox_ticks (seq_high, n);
create index outbox_progress_reached on settle.outbox_progress (tick, position);

-- The first tick that shows an event, of those that are kept; null: none does. It is the first that knows the event's
-- number, or for a transaction that ended late one of those after it; and what one tick shows all later ones show, so the
-- range is halved until one is left. (After a restore new events have transaction ids that old ticks would show; the number
-- tells them apart.)
create function settle.first_tick_of(event_xid xid8, event_seq bigint) returns bigint
language plpgsql stable strict parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
  known bigint;
  shown boolean;
begin
  select n, pg_visible_in_snapshot(event_xid, snap) into known, shown
  from settle.outbox_ticks where seq_high >= event_seq order by seq_high, n limit 1;
  if shown then return known; end if;
  return (
    -- Of the ticks from low up to high, which is not one of them, some may show it; of those from high on, `first` is the
    -- first.
    with recursive search(low, high, first) as (
      (select known + 1, n, n from settle.outbox_ticks
       where n = (select max(n) from settle.outbox_ticks) and pg_visible_in_snapshot(event_xid, snap))
      union all
      select case when t.shown then s.low else t.n + 1 end, case when t.shown then (s.low + s.high) / 2 else s.high end,
             case when t.shown then t.n else s.first end
      from search s
      cross join lateral (select n, pg_visible_in_snapshot(event_xid, snap) as shown
                          from settle.outbox_ticks where n >= (s.low + s.high) / 2 order by n limit 1) t
      where s.low < s.high)
    select first from search where low >= high);
end $$;

-- When the share of an event first noted that it was done. Null: it is not; or that was so long ago that the tick has
-- gone. A relay goes from tick to tick: notes of tick n - 1 with a number are those of window n.
create function settle.published_at(event_xid xid8, event_seq bigint, event_lane smallint) returns timestamptz
language plpgsql stable strict parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
  shown_in bigint := settle.first_tick_of(event_xid, event_seq);
begin
  if shown_in is null or not exists (select from settle.outbox_ticks where n < shown_in) then return null; end if;
  return (select to_timestamp(p.at / 1000000.0) from settle.outbox_progress p
          where (p.tick, p.position) >= (shown_in - 1, event_seq) and (p.shares >> (event_lane & 15)) & 1 = 1
          order by p.tick, p.position limit 1);
end $$;
-- They tell nothing but numbers of ticks and times, and whoever may read the view may ask.
grant execute on function settle.first_tick_of(xid8, bigint), settle.published_at(xid8, bigint, smallint) to public;

-- How far one share has come; see settle.outbox_cursors.
create type settle.share_reached as (
  done      pg_snapshot,                            -- everything that it shows is done
  done_high bigint,                                 -- no event that it shows has a higher number
  upto      pg_snapshot,                            -- of what it shows beyond that …
  position  bigint                                  -- … everything up to this number
);

-- All of them, in one row; element 1 is share 0. Read once by a statement, however many events it looks at.
create view settle.outbox_reached as
select array_agg(row(done.snap, done.seq_high, upto.snap, c.position)::settle.share_reached order by c.share) as shares
from settle.outbox_cursors c
left join settle.outbox_ticks done on done.n = c.tick
left join settle.outbox_ticks upto on upto.n = c.upto and c.upto > 0;

create function settle.is_done(event_xid xid8, event_seq bigint, reached settle.share_reached) returns boolean
language plpgsql immutable parallel safe cost 1 as $$
begin
  return coalesce(event_seq operator(pg_catalog.<=) reached.done_high
                  and pg_catalog.pg_visible_in_snapshot(event_xid, reached.done), false)
      or coalesce(event_seq operator(pg_catalog.<=) reached.position
                  and pg_catalog.pg_visible_in_snapshot(event_xid, reached.upto), false);
end $$;
grant execute on function settle.is_done(xid8, bigint, settle.share_reached) to public;

create or replace view settle.outbox_events as
select o.seq as id, o.topic, o.aggregate_type, o.aggregate_id, o.event_type, o.event_id, o.payload, o.headers,
       to_timestamp(o.created_at / 1000000.0) as created_at,
       coalesce((select case h.status when 'FAILED' then 'FAILED' else 'PENDING' end
                 from settle.outbox_held h where h.seq = o.seq),
                case when o.done then 'PUBLISHED' else 'PENDING' end) as status,
       case when (select h.seq from settle.outbox_held h where h.seq = o.seq) is null
            then settle.published_at(o.xid, o.seq, o.lane) end as published_at,
       coalesce((select h.attempts::bigint from settle.outbox_held h where h.seq = o.seq),
                case when not o.done then (select s.failures from settle.shares s
                                           where s.scope = 'outbox' and s.share = (o.lane & 15)) end,
                0) as attempts,
       coalesce((select h.last_error from settle.outbox_held h where h.seq = o.seq),
                case when not o.done then (select s.last_error from settle.shares s
                                           where s.scope = 'outbox' and s.share = (o.lane & 15)) end) as last_error,
       to_timestamp(o.deliver_at / 1000000.0) as deliver_at
from (select o.*, settle.is_done(o.xid, o.seq, (select r.shares from settle.outbox_reached r)[(o.lane & 15) + 1]) as done
      from settle.outbox o) o
union all
select h.seq, h.topic, h.aggregate_type, h.aggregate_id, h.event_type, h.event_id, h.payload, h.headers,
       to_timestamp(h.created_at / 1000000.0), case h.status when 'FAILED' then 'FAILED' else 'PENDING' end,
       null::timestamptz, h.attempts::bigint, h.last_error, null::timestamptz
from settle.outbox_held h where (select o.seq from settle.outbox o where o.seq = h.seq) is null;

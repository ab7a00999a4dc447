-- The lane is the server's own business here; naming the parameter keeps the statement the same for callers.
-- name: insert_event
insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
                           created_at, payload, deliver_at)
select $2::uuid, $3, $4, $5, $6, $7, $8, $9::bigint, $10::bytea, $11::bigint where $1::integer is not null

-- Two transactions that publish for one key, and hold no lock of their own on it, go one after the other.
-- name: lock_key
select pg_advisory_xact_lock(hashtextextended('settle.key.' || $1, 0))

-- name: read_identity
select database_id, generation from settle.identity

-- A tick, if anything can have become visible: the sequence has moved, or somebody who may hold a number up to
-- the last tick's has ended since. Returns the newest tick, ours or not, the history that all of them belong to, and
-- whether somebody else has taken this tick before us. It must be the first statement of its transaction that
-- writes: xid_high has to be drawn after the sequence was read. Its commit is synced, whatever the session's setting
-- ($2: 1).
-- name: write_tick
with last as (select * from settle.outbox_ticks order by n desc limit 1),
-- Not read from the sequence's own row: while nextval() logs, that shows a number 32 ahead, which nobody has drawn,
-- and those who draw the ones before it afterwards would be lost. The function waits for it. (It gives null to whom
-- it may not tell, and then the tick fails.)
seq as materialized (select pg_sequence_last_value('settle.outbox_seq'::regclass) as last_value),
wanted as (
  select k.n + 1 as n, pg_current_snapshot() as snap, s.last_value as seq_high,
         case when s.last_value <> k.seq_high then pg_current_xact_id() else k.xid_high end as xid_high
  from seq s, last k
  where s.last_value is distinct from k.seq_high
     or exists (select from pg_snapshot_xip(k.snap) x
                where x < k.xid_high and pg_visible_in_snapshot(x, pg_current_snapshot()))
     or exists (select from generate_series(pg_snapshot_xmax(k.snap)::text::bigint,
                                            k.xid_high::text::bigint - 1) g
                where pg_visible_in_snapshot(g::text::xid8, pg_current_snapshot()))),
made as (
  insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at)
  select n, snap, seq_high, xid_high, $1::bigint from wanted
  on conflict (n) do nothing
  returning n)
select coalesce((select n from made), (select n from last)) as tick, i.system_identifier, i.timeline,
       (select count(*) from wanted) - (select count(*) from made) as taken_by_others,
       case when $2::integer = 1 then set_config('synchronous_commit', 'on', true) end as synced
from settle.identity i

-- name: count_ticks
select count(*) as found from settle.outbox_ticks where n in ($1, $2)

-- Leaves come and go faster than their statistics, so the planner is told what is always right here: indexes. And the
-- parts of a window are to come one after the other.
-- name: plan_for_reading
select set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)

-- Rows that tick $2 shows and tick $1 does not, above number $3, of the shares in mask $4, at most $5. First
-- those that were under way at tick $1, all of them with numbers up to its highest; then the newer ones, which
-- tick $1 cannot show. Each part is ordered, and they do not overlap. What is done for every row is kept cheap: most
-- transactions are older than any that was under way at tick $2, and as a rule all shares are read. Conditions are
-- written so that one index fits: of transactions that ended late, (xid, seq), which gives a page of a large one
-- without a look at the rest of it; of the others (seq).
-- name: read_window
with a as materialized (select snap, seq_high, xid_high from settle.outbox_ticks where n = $1),
     b as materialized (select snap, seq_high from settle.outbox_ticks where n = $2)
(select o.seq, o.lane, o.event_id, o.topic, o.event_type, o.aggregate_type, o.aggregate_id, o.content_type, o.headers,
        o.created_at, o.payload, o.deliver_at
 from (select x from pg_snapshot_xip((select snap from a)) x
       where pg_visible_in_snapshot(x, (select snap from b))
       union all
       select g::text::xid8
       from generate_series((select pg_snapshot_xmax(snap)::text::bigint from a),
                            (select xid_high::text::bigint - 1 from a)) g
       where pg_visible_in_snapshot(g::text::xid8, (select snap from b))) ended(x)
 cross join lateral
   (select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
           created_at, payload, deliver_at
    from settle.outbox
    where (xid, seq) > (ended.x, $3::bigint) and (xid, seq) <= (ended.x, (select seq_high from a))
      and ($4::integer = 65535 or ($4::integer >> (lane & 15)) & 1 = 1)
    order by xid, seq limit $5) o
 where $3::bigint < (select seq_high from a)
 order by o.seq limit $5)
union all
(select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
        created_at, payload, deliver_at
 from settle.outbox
 where seq > (select greatest($3::bigint, seq_high) from a) and seq <= (select seq_high from b)
   and (xid < (select pg_snapshot_xmin(snap) from b) or pg_visible_in_snapshot(xid, (select snap from b)))
   and ($4::integer = 65535 or ($4::integer >> (lane & 15)) & 1 = 1)
 order by seq limit $5)

-- name: read_cursors
select share, tick, upto, position from settle.outbox_cursors

-- The fence: nothing is noted unless every one of these shares is still owned in this epoch. $1 shares,
-- $2 epochs, $3 the owner, then the note itself.
-- name: note_progress
with mine as (
  select 1 from settle.shares s
  join unnest($1::integer[], $2::bigint[]) h(share, epoch) on h.share = s.share and h.epoch = s.epoch
  where s.scope = 'outbox' and s.owner = $3
  for share of s)
insert into settle.outbox_progress (shares, tick, upto, position, at)
select $4::integer, $5::bigint, $6::bigint, $7::bigint, $8::bigint
where (select count(*) from mine) = cardinality($1::integer[])

-- name: forget_failures
update settle.shares set failures = 0, last_error = null
where scope = 'outbox' and share = any ($1::integer[]) and owner = $2 and failures > 0

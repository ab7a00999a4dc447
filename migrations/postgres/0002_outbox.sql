-- The outbox of a service, in the service's own database.
--
-- A row is written once, in the caller's transaction, and never updated or deleted: what is done is truncated,
-- leaf by leaf. So nothing bloats, and no transaction, however long, makes reading slower.

create table settle.identity (
  one         boolean primary key default true check (one),
  database_id text not null,                        -- drawn once; part of every message's source
  generation  bigint not null default 1,            -- raised by settle.rebase_outbox
  places_drawn bigint not null default 0,           -- for events that were held
  -- The history that the transaction ids below belong to; null where it could not be read.
  system_identifier bigint,
  timeline          bigint
);
insert into settle.identity (database_id) values (replace(gen_random_uuid()::text, '-', ''));

create function settle.note_cluster() returns void language plpgsql as $$
begin
  update settle.identity set
    system_identifier = (select c.system_identifier from pg_control_system() c),
    timeline = ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int;
exception when insufficient_privilege then
  raise notice 'the identity of this cluster cannot be read; a switch to another one will not be noticed';
end $$;
select settle.note_cluster();

-- Fixed for ever, and the same as in the library. In PL/pgSQL, which keeps its plan: convert_to counts as less
-- than immutable, so an SQL function around it would never be inlined, and planned again by every statement.
create function settle.lane(key text) returns smallint
language plpgsql immutable strict parallel safe as $$
begin
  return pg_catalog.get_byte(pg_catalog.sha256(pg_catalog.convert_to(key, 'UTF8')), 0);
end $$;

create sequence settle.outbox_seq as bigint cache 1;
select nextval('settle.outbox_seq');                -- a fresh sequence shows its first number before it is drawn
create sequence settle.outbox_ring as bigint cache 1;  -- which leaf is written to: its value modulo 8
select nextval('settle.outbox_ring');

-- xid stands before seq: defaults are drawn from left to right, and whoever holds a number must already have
-- his transaction id, or a tick could not know that he is under way.
create table settle.outbox (
  slot           smallint not null default (pg_sequence_last_value('settle.outbox_ring'::regclass) & 7),
  xid            xid8 not null default pg_current_xact_id(),
  seq            bigint not null default nextval('settle.outbox_seq'),
  lane           smallint not null,                 -- filled by the trigger below, whatever was given
  event_id       uuid not null default gen_random_uuid(),
  topic          text not null,
  event_type     text not null,
  aggregate_type text not null default '',
  aggregate_id   text not null default '',          -- the key: order is kept within it
  content_type   text not null default 'application/json',
  headers        text not null default '',          -- JSON object of strings, or empty
  created_at     bigint not null                    -- microseconds since 1970
                 default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
  deliver_at     bigint,                            -- not before; null: at once
  payload        bytea not null
) partition by list (slot);
do $$
begin
  for i in 0..7 loop
    execute format('create table settle.outbox_%s partition of settle.outbox for values in (%s)', i, i);
    execute format('create index on settle.outbox_%s (xid, seq)', i);
    execute format('create unique index on settle.outbox_%s (seq)', i);
  end loop;
end $$;

-- A trigger, because its code is kept by the session: a generated column and checks are read from the catalogue
-- and planned again by every insert, for three times the cost of the rest of it. No operators, and every name with
-- its schema: it runs with the caller's search path, and a path of its own would cost half as much again.
create function settle.complete_event() returns trigger language plpgsql as $$
begin
  if pg_catalog.texteq(new.topic, '') or pg_catalog.texteq(new.event_type, '') then
    raise check_violation using message = 'an event needs a topic and an event_type; one of them is empty';
  end if;
  if pg_catalog.textne(new.headers, '')
     and pg_catalog.textne(pg_catalog.jsonb_typeof(new.headers::pg_catalog.jsonb), 'object') then
    raise check_violation using message = 'headers must be a JSON object of strings, or empty';
  end if;
  -- As settle.lane, which not everybody who may insert may call.
  new.lane := pg_catalog.get_byte(pg_catalog.sha256(pg_catalog.convert_to(
    case when pg_catalog.texteq(new.aggregate_id, '') then new.event_id::pg_catalog.text
         else new.aggregate_id end, 'UTF8')), 0);
  return new;
end $$;
create trigger complete_event before insert on settle.outbox
for each row execute function settle.complete_event();

-- Relays publish what is visible in a tick that a synced commit has written: it is durable, and what commits
-- late is found in a later tick, whatever its number. Ticks are numbered from the snapshot that they hold, and
-- the primary key arbitrates: of two tickers with the same view one inserts nothing.
create table settle.outbox_ticks (
  n        bigint primary key,
  snap     pg_snapshot not null,
  seq_high bigint not null,                         -- no row visible in snap has a higher number
  xid_high xid8 not null,                           -- nobody with a higher id has a number up to seq_high
  at       bigint not null                          -- microseconds since 1970
);
create index outbox_ticks_at on settle.outbox_ticks (at);
insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at)
select 0, pg_current_snapshot(), last_value, pg_current_xact_id(),
       (extract(epoch from clock_timestamp()) * 1000000)::bigint
from settle.outbox_seq;

-- One row per note of progress. Shares in the mask have done everything that is visible in tick `tick`, and of
-- what tick `upto` shows beyond it, everything up to number `position`. Only ever inserted.
create table settle.outbox_progress (
  id       bigint generated always as identity primary key,
  shares   integer not null,                        -- bit mask
  tick     bigint not null,
  upto     bigint not null,
  position bigint not null,
  at       bigint not null
);

-- Events that their window has passed and that are not out yet: the broker has refused them, they wait behind one
-- of their key that it has refused, or their time has not come. Copied here, so that nobody else waits for them
-- and no leaf of the ring is kept for them.
create table settle.outbox_held (
  seq            bigint primary key,                -- as in settle.outbox
  tick           bigint not null,                   -- whose window it was in
  lane           smallint not null,
  event_id       uuid not null,
  topic          text not null,
  event_type     text not null,
  aggregate_type text not null,
  aggregate_id   text not null,
  content_type   text not null,
  headers        text not null,
  created_at     bigint not null,
  status         text not null check (status in ('WAITING', 'FAILED')),
  blocks         boolean not null,                  -- later ones of its key wait for it
  attempts       integer not null,
  next_at        bigint not null,                   -- when to try again; FAILED: since when it is
  last_error     text,
  place          text,                              -- fixed before it is sent: consumers judge copies by it
  payload        bytea not null
);
create index outbox_held_key on settle.outbox_held (lane, aggregate_id, tick, seq) where blocks;
create index outbox_held_due on settle.outbox_held (next_at) where not blocks;

-- What was published once per aggregate and type; the event's id is derived from them.
create table settle.natural_keys (
  event_id   uuid primary key,
  created_at bigint not null
);
create index natural_keys_age on settle.natural_keys (created_at);

-- Which leaf was written to since when. Slots are used in turn.
create table settle.outbox_leaves (
  slot      smallint primary key,
  opened_at bigint not null default 0               -- microseconds since 1970
);
insert into settle.outbox_leaves (slot) select generate_series(0, 7);
update settle.outbox_leaves set opened_at = (extract(epoch from clock_timestamp()) * 1000000)::bigint
where slot = (select pg_sequence_last_value('settle.outbox_ring'::regclass) & 7);

-- One step of the ring: empties a leaf of which every row is older than `keep` and done by every share, and
-- opens the next leaf when the current one has been written to for long enough. Called by relays now and then.
-- A leaf that somebody still uses is left for later; nobody ever waits here. What the check sees must not be
-- older than the lock, hence READ COMMITTED.
create function settle.turn_outbox_ring(now_us bigint, keep_us bigint, out emptied integer, out opened integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current integer := pg_sequence_last_value('settle.outbox_ring'::regclass) & 7;
  following integer := (current + 1) & 7;
  done settle.outbox_ticks;
  found_rows boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'settle.turn_outbox_ring needs READ COMMITTED';
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended('settle.outbox_ring', 0)) then return; end if;
  select t.* into done from settle.outbox_ticks t
  where t.at < now_us - keep_us and t.n <= (select min(c.tick) from settle.outbox_cursors c)
  order by t.at desc limit 1;
  if done.n is not null then
    for i in 1..7 loop
      execute format('select exists (select from settle.outbox_%s)', (current + i) & 7) into found_rows;
      continue when not found_rows;
      begin
        execute format('lock table only settle.outbox_%s in access exclusive mode nowait', (current + i) & 7);
      exception when lock_not_available then continue;
      end;
      execute format('select exists (select from settle.outbox_%1$s where xid >= pg_snapshot_xmax($1))
                          or exists (select from settle.outbox_%1$s
                                     where xid = any (array(select pg_snapshot_xip($1))))', (current + i) & 7)
      into found_rows using done.snap;
      if not found_rows then
        execute format('truncate only settle.outbox_%s', (current + i) & 7);
        emptied := (current + i) & 7;
      end if;
      exit;  -- one at a time: a short lock
    end loop;
  end if;
  execute format('select exists (select from settle.outbox_%s)', following) into found_rows;
  if not found_rows and (select l.opened_at from settle.outbox_leaves l where l.slot = current)
                        < now_us - keep_us / 6 then
    perform nextval('settle.outbox_ring');
    update settle.outbox_leaves set opened_at = now_us where slot = following;
    opened := following;
  end if;
end $$;

-- Publishing from any language: select settle.publish('orders', 'order.placed', '42', '{"total":1}').
-- Its owner's rights and a fixed search path: callers need no right on the tables.
create function settle.publish(topic text, event_type text, key text, payload bytea,
                               aggregate_type text default '', headers jsonb default null,
                               content_type text default 'application/json', event_id uuid default null,
                               deliver_at timestamptz default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id uuid := coalesce(event_id, gen_random_uuid());
begin
  insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
                             payload, deliver_at)
  values (id, publish.topic, publish.event_type, publish.aggregate_type, coalesce(key, ''),
          publish.content_type, coalesce(publish.headers::text, ''), publish.payload,
          (extract(epoch from publish.deliver_at) * 1000000)::bigint);
  return id;
end $$;

-- Written so that they become part of the statement that calls them.
create function settle.publish(topic text, event_type text, key text, payload text)
returns uuid language sql
return settle.publish(topic, event_type, key, pg_catalog.convert_to(payload, 'UTF8'));

create function settle.publish(topic text, event_type text, key text, payload jsonb)
returns uuid language sql
return settle.publish(topic, event_type, key, pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8'));

-- Where each share stands: the newest note that has its bit.
create view settle.outbox_cursors as
select s.share, p.id, coalesce(p.tick, 0) as tick, coalesce(p.upto, 0) as upto,
       coalesce(p.position, 0) as position
from generate_series(0, 15) s(share)
left join lateral (select * from settle.outbox_progress p where (p.shares >> s.share) & 1 = 1
                   order by p.id desc limit 1) p on true;

-- The outbox as people and other tools read it, and as others may insert into it.
create view settle.outbox_events as
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
       to_timestamp(h.created_at / 1000000.0), case h.status when 'FAILED' then 'FAILED' else 'PENDING' end, null,
       h.attempts, h.last_error, null
from settle.outbox_held h where not exists (select from settle.outbox o where o.seq = h.seq);

create function settle.insert_outbox_event() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.event_id := coalesce(new.event_id, gen_random_uuid());
  insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, headers, payload,
                             deliver_at)
  values (new.event_id, new.topic, new.event_type, coalesce(new.aggregate_type, ''),
          coalesce(new.aggregate_id, ''), coalesce(new.headers, ''), new.payload,
          (extract(epoch from new.deliver_at) * 1000000)::bigint);
  return new;
end $$;
create trigger insert_outbox_event instead of insert on settle.outbox_events
for each row execute function settle.insert_outbox_event();

-- After a restore or a failover transaction ids belong to another history. Relays stop then (cluster_changed),
-- until somebody runs: select settle.rebase_outbox(). What was not published goes on under new ids and numbers,
-- in its order; nothing else changes. Returns how many events those are. Whoever publishes meanwhile waits.
create function settle.rebase_outbox() returns bigint language plpgsql as $$
declare
  waiting bigint;
  beginning bigint;
  last bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'settle.rebase_outbox needs READ COMMITTED: it has to see what was committed while it waited'
      using hint = 'begin isolation level read committed';
  end if;
  perform from settle.shares where scope = 'outbox' order by share for update;  -- as relays do: these first
  lock table settle.outbox in access exclusive mode;
  create temporary table settle_waiting on commit drop as
    select o.* from settle.outbox o join settle.outbox_events e on e.id = o.seq
    where e.status = 'PENDING' and not exists (select from settle.outbox_held h where h.seq = o.seq);
  get diagnostics waiting = row_count;
  truncate settle.outbox;
  -- Above every number and every tick that was used since the backup: consumers remember them.
  beginning := extract(epoch from clock_timestamp())::bigint << 20;
  perform setval('settle.outbox_seq', greatest((select s.last_value from settle.outbox_seq s), beginning));
  last := greatest((select max(t.n) from settle.outbox_ticks t), beginning);
  delete from settle.outbox_progress;
  delete from settle.outbox_ticks;
  -- A tick that shows nothing: what is in the table from here on is unread. A snapshot of ours would show our own
  -- rows, and those of transactions that wait for this lock, as done.
  insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at)
  values (last + 1, '3:3:', 0, '3', (extract(epoch from clock_timestamp()) * 1000000)::bigint);
  insert into settle.outbox_progress (shares, tick, upto, position, at)
  select 65535, last + 1, 0, 0, (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  update settle.shares set owner = null, epoch = epoch + 1, lease_until = 0 where scope = 'outbox';
  insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
                             created_at, deliver_at, payload)
  select event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, created_at, deliver_at,
         payload
  from settle_waiting order by seq;
  update settle.identity set generation = generation + 1;
  perform settle.note_cluster();
  return waiting;
end $$;

-- The application's role: it may publish, and write nothing that relays rely on. Grant it to your own.
do $$
begin
  if not exists (select from pg_roles where rolname = 'settle_publisher') then
    create role settle_publisher nologin;
  end if;
exception
  when duplicate_object or unique_violation then null;  -- roles are the cluster's: another database was first
  when insufficient_privilege then
    raise notice 'the role settle_publisher is not there, and this user may not create it';
end $$;
do $$
begin
  if exists (select from pg_roles where rolname = 'settle_publisher') then
    grant usage on schema settle to settle_publisher;
    grant insert (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, created_at,
                  deliver_at, payload) on settle.outbox to settle_publisher;
    grant insert on settle.outbox_events to settle_publisher;
    grant usage on sequence settle.outbox_seq to settle_publisher;
    grant select on sequence settle.outbox_ring to settle_publisher;  -- USAGE would let it turn the ring
    grant insert, select on settle.natural_keys to settle_publisher;
  end if;
end $$;
revoke all on all functions in schema settle from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'settle_publisher') then
    grant execute on function settle.lane(text), settle.publish(text, text, text, text),
      settle.publish(text, text, text, jsonb),
      settle.publish(text, text, text, bytea, text, jsonb, text, uuid, timestamptz) to settle_publisher;
  end if;
end $$;

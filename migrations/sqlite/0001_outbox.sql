-- The outbox of a service, in the service's own file.

create table settle_identity (
  one         integer primary key check (one = 1),
  database_id text not null,                        -- drawn once; part of every message's source
  generation  integer not null default 1            -- raised when the file is restored from a backup
) strict;
insert into settle_identity (one, database_id) values (1, lower(hex(randomblob(16))));

-- A row is written once, in the caller's transaction, and never updated. Its state follows from the
-- position that its share of the lanes has reached.
create table settle_outbox (
  seq            integer primary key autoincrement, -- never reused, so it can be a cursor
  lane           integer not null check (lane between 0 and 255), -- hash of the key; lane & 15 is the share
  event_id       text not null check (length(event_id) = 36),
  topic          text not null check (length(topic) > 0),
  event_type     text not null check (length(event_type) > 0),
  aggregate_type text not null default '',
  aggregate_id   text not null default '',          -- the key: order is kept within it
  content_type   text not null default 'application/json',
  headers        text not null default ''           -- JSON object of strings, or empty
                 check (headers = '' or (json_valid(headers) and json_type(headers) = 'object')),
  created_at     integer not null,                  -- microseconds since 1970
  payload        blob not null                      -- last, so that a scan can stop before it
) strict;

-- Relays publish only up to a tick that a synced commit has written: what they read below it is durable
-- even if the writer's own commit was not synced.
create table settle_outbox_tick (
  one      integer primary key check (one = 1),
  seq_high integer not null
) strict;
insert into settle_outbox_tick (one, seq_high) values (1, 0);

-- One row per published batch: when the shares in the mask passed a position.
create table settle_outbox_progress (
  id       integer primary key autoincrement,
  shares   integer not null,                        -- bit mask
  position integer not null,
  at       integer not null
) strict;
create index settle_outbox_progress_position on settle_outbox_progress (position);

create table settle_shares (
  scope       text not null,
  share       integer not null,
  position    integer not null default 0,           -- everything at or below it is done
  owner       text,
  epoch       integer not null default 0,           -- grows with every change of owner: the fence
  lease_until integer not null default 0,
  failures    integer not null default 0,
  last_error  text,
  primary key (scope, share)
) strict, without rowid;

create table settle_members (
  scope       text not null,
  member      text not null,
  lease_until integer not null,
  primary key (scope, member)
) strict, without rowid;

-- The outbox as people and other tools read it.
create view settle_outbox_events as
select o.seq as id, o.topic, o.aggregate_type, o.aggregate_id, o.event_type, o.event_id, o.payload,
       o.headers, o.created_at,
       case when o.seq <= s.position then 'PUBLISHED' else 'PENDING' end as status,
       case when o.seq <= s.position then
         (select min(p.at) from settle_outbox_progress p
          where p.position >= o.seq and (p.shares >> (o.lane & 15)) & 1) end as published_at,
       -- only the first waiting row of a share has been tried
       case when o.seq = f.seq then s.failures else 0 end as attempts,
       case when o.seq = f.seq then s.last_error end as last_error
from settle_outbox o
left join settle_shares s on s.scope = 'outbox' and s.share = (o.lane & 15)
left join (select t.share, (select min(w.seq) from settle_outbox w
                            where w.seq > t.position and (w.lane & 15) = t.share) as seq
           from settle_shares t where t.scope = 'outbox' and t.failures > 0) f on f.share = s.share;

-- The embedded broker: a log per topic and partition, and positions per consumer group.

create table broker_identity (
  one       integer primary key check (one = 1),
  broker_id text not null                           -- fences carry it: a new file is another broker
) strict;
insert into broker_identity (one, broker_id) values (1, lower(hex(randomblob(16))));

create table broker_topics (
  topic      integer primary key autoincrement,
  name       text not null unique,
  partitions integer not null check (partitions between 1 and 1024)
) strict;

create table broker_messages (
  position     integer primary key autoincrement,   -- one counter for all topics, never reused
  topic        integer not null,
  partition    integer not null,
  event_id     text not null,
  source       text not null,
  event_type   text not null,
  key          text not null,
  subject      text not null,
  content_type text not null,
  time         integer not null,
  extensions   text not null                        -- JSON object of strings, or empty
               check (extensions = '' or (json_valid(extensions) and json_type(extensions) = 'object')),
  payload      blob not null
) strict;
create index broker_messages_partition on broker_messages (topic, partition, position);

create table broker_groups (
  name  text not null,
  topic integer not null,
  primary key (name, topic)
) strict, without rowid;

-- Scope 'group/<topic number>/<group>': the partitions of one topic within one group. The number stands
-- first because names may contain slashes.
create table settle_shares (
  scope       text not null,
  share       integer not null,
  position    integer not null default 0,           -- everything at or below it is acknowledged
  owner       text,
  epoch       integer not null default 0,
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

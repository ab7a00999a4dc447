-- Sagas: flows over several steps that complete or are undone. One row per saga, a journal of what it has done, what it
-- waits for, and what has arrived for it. Times are microseconds since 1970.

-- Names of kinds. The number is made of them, so that whoever starts a saga need not ask for it.
create table settle.saga_kinds (
  kind    bigint primary key,
  host    text not null,
  type    text not null,
  version integer not null,
  unique (host, type, version)
);

create table settle.sagas (
  no          bigint generated always as identity primary key,
  id          uuid not null unique,
  kind        bigint not null,
  shard       smallint not null,            -- by the id; nodes share sagas by it
  entity_id   text not null,
  status      text not null default 'RUNNING'
              check (status in ('RUNNING', 'COMPLETED', 'FAILED', 'COMPENSATING', 'COMPENSATED', 'HELD')),
  wanted      text,                         -- what an operator or a parent asks the owner for
  due_at      bigint,                       -- when to look at it next; null: ended, held, or woken by an event only
  wakes       integer not null default 0,   -- counts those who have set due_at beside the owner
  attempts    integer not null default 0,   -- failed ones of what it is at
  calling     boolean not null default false,  -- a call is out whose answer only its caller gets
  last_error  text,
  deadline_at bigint,
  parent_no   bigint,
  parent_n    integer,                      -- the row of the parent's journal that waits for its end
  input       bytea not null,
  result      bytea,
  created_at  bigint not null,
  updated_at  bigint not null,
  ended_at    bigint,
  check ((status in ('COMPLETED', 'FAILED', 'COMPENSATED')) = (ended_at is not null)),
  check (ended_at is null or due_at is null)
) with (fillfactor = 70);
create index sagas_due on settle.sagas (kind, shard, due_at) where due_at is not null;
create index sagas_calling on settle.sagas (kind, shard) where calling;
create index sagas_ended on settle.sagas (ended_at) where ended_at is not null;
create index sagas_held on settle.sagas (updated_at) where status = 'HELD';
create index sagas_entity on settle.sagas (entity_id);

-- Written by a saga's owner only, under its fence; rows are never changed.
create table settle.saga_journal (
  no         bigint not null,
  n          integer not null,
  kind       smallint not null check (kind between 1 and 16),  -- see src/saga/journal.hpp
  scope      text not null,        -- the path of branches
  name       text not null,
  input      bytea,
  input_hash bigint,
  result     bytea,
  of         integer,              -- the row that this one answers or undoes
  at         bigint not null,
  epoch      bigint not null,
  primary key (no, n)
);

-- Whoever writes sagas of a shard holds its row meanwhile, and finds its own epoch in it.
create table settle.saga_fences (
  kind  bigint not null,
  shard smallint not null,
  epoch bigint not null,
  primary key (kind, shard)
);

create table settle.saga_waits (
  no   bigint not null,
  n    integer not null,
  host text not null,
  type text not null,
  key  text not null,
  primary key (no, n)
);
create index saga_waits_key on settle.saga_waits (host, type, key, no, n);

create table settle.saga_mailbox (
  id          bigint generated always as identity primary key,
  host        text not null,
  type        text not null,
  key         text not null,
  event_id    text not null,
  payload     bytea not null,
  received_at bigint not null,
  no          bigint,              -- the wait that it was given to
  n           integer,
  unique (host, event_id)
);
create index saga_mailbox_free on settle.saga_mailbox (host, type, key, id) where no is null;
create index saga_mailbox_given on settle.saga_mailbox (no, n) where no is not null;
create index saga_mailbox_age on settle.saga_mailbox (received_at) where no is null;

-- Of participants: what they have done for sagas, under which epoch.
create table settle.saga_guards (
  saga   uuid not null,
  step   text not null,
  op     smallint not null,        -- 0: the saga's highest epoch; 1: do; 2: undo
  by_op  smallint not null,        -- which operation has written it: an undo writes (step, do) too
  epoch  bigint not null,
  answer bytea,
  at     bigint not null,
  primary key (saga, step, op)
);
create index saga_guards_age on settle.saga_guards (at);

-- A result as people read it: as JSON if it is that, else as text, else as base64.
create function settle.saga_value(bytes bytea) returns jsonb language plpgsql immutable
set search_path = pg_catalog, pg_temp as $$
declare
  words text;
begin
  words := convert_from(bytes, 'UTF8');
  begin
    return words::jsonb;
  exception when others then
    return to_jsonb(words);
  end;
exception when others then
  return to_jsonb(encode(bytes, 'base64'));
end $$;

create view settle.saga_instances as
select s.id as saga_id, coalesce(k.type, s.kind::text) as saga_type, s.entity_id,
       coalesce((select j.name from settle.saga_journal j where j.no = s.no and j.name <> '' order by j.n desc limit 1),
                '') as current_step,
       s.status,
       coalesce((select jsonb_object_agg(r.name, settle.saga_value(r.result))
                 from (select coalesce(a.result, o.result) as result,
                              o.scope || o.name || case when o.occurrence > 1 then '#' || o.occurrence else '' end as name
                       from (select j.n, j.scope, j.name, j.kind, j.result,
                                    row_number() over (partition by j.scope, j.name order by j.n) as occurrence
                             from settle.saga_journal j where j.no = s.no and j.of is null and j.name <> '') o
                       left join settle.saga_journal a on a.no = s.no and a.of = o.n and a.kind in (4, 8)
                       where o.kind = 1 or a.n is not null) r
                 where r.result is not null), '{}'::jsonb) as context,
       to_timestamp(s.created_at / 1000000.0) as created_at, to_timestamp(s.updated_at / 1000000.0) as updated_at,
       k.host, k.version, s.attempts, s.last_error, to_timestamp(s.due_at / 1000000.0) as due_at,
       to_timestamp(s.ended_at / 1000000.0) as ended_at
from settle.sagas s left join settle.saga_kinds k on k.kind = s.kind;

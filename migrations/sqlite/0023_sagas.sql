-- Sagas: flows over several steps that complete or are undone. One row per saga, a journal of what it has done, what it
-- waits for, and what has arrived for it. Times are microseconds since 1970.

-- Names of kinds. The number is made of them, so that whoever starts a saga need not ask for it.
create table settle_saga_kinds (
  kind    integer primary key,
  host    text not null,
  type    text not null,
  version integer not null,
  unique (host, type, version)
) strict, without rowid;

create table settle_sagas (
  no          integer primary key autoincrement,
  id          text not null unique,
  kind        integer not null,
  shard       integer not null,            -- by the id; nodes share sagas by it
  entity_id   text not null,
  status      text not null default 'RUNNING'
              check (status in ('RUNNING', 'COMPLETED', 'FAILED', 'COMPENSATING', 'COMPENSATED', 'HELD')),
  wanted      text,                         -- what an operator or a parent asks the owner for
  due_at      integer,                       -- when to look at it next; null: ended, held, or woken by an event only
  wakes       integer not null default 0,   -- counts those who have set due_at beside the owner
  attempts    integer not null default 0,   -- failed ones of what it is at
  calling     integer not null default 0,  -- a call is out whose answer only its caller gets
  last_error  text,
  deadline_at integer,
  parent_no   integer,
  parent_n    integer,                      -- the row of the parent's journal that waits for its end
  input       blob not null,
  result      blob,
  created_at  integer not null,
  updated_at  integer not null,
  ended_at    integer,
  check ((status in ('COMPLETED', 'FAILED', 'COMPENSATED')) = (ended_at is not null)),
  check (ended_at is null or due_at is null)
) strict;
create index settle_sagas_due on settle_sagas (kind, due_at) where due_at is not null;
create index settle_sagas_calling on settle_sagas (kind, shard) where calling;
create index settle_sagas_ended on settle_sagas (ended_at) where ended_at is not null;
create index settle_sagas_held on settle_sagas (updated_at) where status = 'HELD';
create index settle_sagas_entity on settle_sagas (entity_id);

-- Written by a saga's owner only, under its fence; rows are never changed.
create table settle_saga_journal (
  no         integer not null,
  n          integer not null,
  kind       integer not null check (kind between 1 and 16),  -- see src/saga/journal.hpp
  scope      text not null,        -- the path of branches
  name       text not null,
  input      blob,
  input_hash integer,
  result     blob,
  of         integer,              -- the row that this one answers or undoes
  at         integer not null,
  epoch      integer not null,
  primary key (no, n)
) strict, without rowid;

-- Whoever writes sagas of a shard holds its row meanwhile, and finds its own epoch in it.
create table settle_saga_fences (
  kind  integer not null,
  shard integer not null,
  epoch integer not null,
  primary key (kind, shard)
) strict, without rowid;

create table settle_saga_waits (
  no   integer not null,
  n    integer not null,
  host text not null,
  type text not null,
  key  text not null,
  primary key (no, n)
) strict, without rowid;
create index settle_saga_waits_key on settle_saga_waits (host, type, key, no, n);

create table settle_saga_mailbox (
  id          integer primary key autoincrement,
  host        text not null,
  type        text not null,
  key         text not null,
  event_id    text not null,
  payload     blob not null,
  received_at integer not null,
  no          integer,              -- the wait that it was given to
  n           integer,
  unique (host, event_id)
) strict;
create index settle_saga_mailbox_free on settle_saga_mailbox (host, type, key, id) where no is null;
create index settle_saga_mailbox_given on settle_saga_mailbox (no, n) where no is not null;
create index settle_saga_mailbox_age on settle_saga_mailbox (received_at) where no is null;

-- Of participants: what they have done for sagas, under which epoch.
create table settle_saga_guards (
  saga   text not null,
  step   text not null,
  op     integer not null,        -- 0: the saga's highest epoch; 1: do; 2: undo
  by_op  integer not null,        -- which operation has written it: an undo writes (step, do) too
  epoch  integer not null,
  answer blob,
  at     integer not null,
  primary key (saga, step, op)
) strict, without rowid;
create index settle_saga_guards_age on settle_saga_guards (at);

-- Results are shown as JSON if they are that, else as text.
create view settle_saga_instances as
select s.id as saga_id, coalesce(k.type, cast(s.kind as text)) as saga_type, s.entity_id,
       coalesce((select j.name from settle_saga_journal j where j.no = s.no and j.name <> '' order by j.n desc limit 1),
                '') as current_step,
       s.status,
       (select json_group_object(r.name, json(case when json_valid(r.result) then r.result else json_quote(r.result) end))
        from (select cast(coalesce(a.result, o.result) as text) as result,
                     o.scope || o.name || case when o.occurrence > 1 then '#' || o.occurrence else '' end as name
              from (select j.n, j.scope, j.name, j.kind, j.result,
                           row_number() over (partition by j.scope, j.name order by j.n) as occurrence
                    from settle_saga_journal j where j.no = s.no and j.of is null and j.name <> '') o
              left join settle_saga_journal a on a.no = s.no and a.of = o.n and a.kind in (4, 8)
              where o.kind = 1 or a.n is not null) r
        where r.result is not null) as context,
       s.created_at, s.updated_at, k.host, k.version, s.attempts, s.last_error, s.due_at, s.ended_at
from settle_sagas s left join settle_saga_kinds k on k.kind = s.kind;

-- The effect log of systems under test. Deliberately without a unique key: it must be able to show a
-- doubled effect.
create table settle.effects (
  id       bigint generated always as identity primary key,
  kind     text not null check (kind in ('committed', 'applied')),
  consumer text not null default '',
  topic    text not null,
  key      text not null,
  subject  text not null,
  event_id text,
  at       bigint not null
);

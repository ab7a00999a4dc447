-- Fenced ownership of numbered shares of work. The schema `settle` is there: migrating creates it.

create table settle.shares (
  scope       text not null,
  share       integer not null,
  position    bigint not null default 0,            -- everything at or below it is done
  owner       text,
  epoch       bigint not null default 0,            -- grows with every change of owner: the fence
  lease_until bigint not null default 0,            -- microseconds since 1970
  failures    bigint not null default 0,
  last_error  text,
  primary key (scope, share)
) with (fillfactor = 50);                           -- updated all the time: new versions fit on the same page

create table settle.members (
  scope       text not null,
  member      text not null,
  lease_until bigint not null,
  primary key (scope, member)
) with (fillfactor = 50);

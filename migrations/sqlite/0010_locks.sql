-- Locks with a name. A row is never deleted and its epoch only grows, so an owner that was replaced can never match
-- its row again.
create table settle_locks (
  name       text primary key,
  owner      text not null,                         -- the last one, also after it has released the lock
  epoch      integer not null,                      -- grows with every owner: the fence
  held_until integer not null                       -- microseconds since 1970; 0: released
) strict, without rowid;

-- The highest token seen per resource, for locks that are kept elsewhere.
create table settle_lock_fences (
  resource text primary key,
  epoch    integer not null,
  owner    text not null
) strict, without rowid;

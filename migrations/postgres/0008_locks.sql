-- Locks with a name. A row is never deleted and its epoch only grows, so an owner that was replaced can never match
-- its row again.
create table settle.locks (
  name       text primary key,
  owner      text not null,                         -- the last one, also after it has released the lock
  epoch      bigint not null,                       -- grows with every owner: the fence
  held_until bigint not null                        -- microseconds since 1970; 0: released
) with (fillfactor = 50);                           -- updated all the time: new versions fit on the same page

-- Nobody searches by it. It makes the epoch a part of a key, so that PostgreSQL lets a take-over, which changes the
-- epoch, wait for transactions that hold the row FOR KEY SHARE, and lets renewals and releases, which do not, pass.
create unique index locks_epoch on settle.locks (name, epoch);

-- The highest token seen per resource, for locks that are kept elsewhere.
create table settle.lock_fences (
  resource text primary key,
  epoch    bigint not null,
  owner    text not null
) with (fillfactor = 50);

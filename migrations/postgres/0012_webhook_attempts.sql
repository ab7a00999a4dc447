-- What tells failures of a webhook apart: those that were expected to pass, and processes that ended over it.
alter table settle.webhook_events
  add column passing integer not null default 0,    -- of the attempts, those
  add column starts  integer not null default 0;    -- marked; nobody has seen how they ended

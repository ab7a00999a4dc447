-- Natural keys: what was published once per aggregate and type. The event id is derived from the key, so
-- the id is the key here. Kept for a stated time (relay_options.natural_key_keep).
create table settle_natural_keys (
  event_id   text primary key check (length(event_id) = 36),
  created_at integer not null
) strict, without rowid;
create index settle_natural_keys_age on settle_natural_keys (created_at);

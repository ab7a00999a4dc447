-- When the broker took a message, by its own clock: what retention goes by.
alter table broker_messages add column stored_at integer not null default 0;

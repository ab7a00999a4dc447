-- Notes of what was claimed together, in rows that are appended: as a table without rowid each of them took an overflow
-- page and had its neighbours written again, a fifth of what a batch writes.
create table settle_consumers (
  number   integer primary key,
  consumer text not null unique
) strict;
insert into settle_consumers (consumer) select distinct consumer from settle_processed_batches;

alter table settle_processed_batches rename to settle_processed_batches_before;
create table settle_processed_batches (
  id           integer primary key,                 -- grows per consumer, from its number times 2^40 on
  consumer     integer not null,                    -- its number
  processed_at integer not null,                    -- by the consumer's own clock
  message_ids  text not null,                       -- JSON array
  -- Where they came from, as JSON: [log, highest position, [source, [lane, highest place]…]…]…
  -- A log is a partition of the broker.
  logs         text not null
) strict;
insert into settle_processed_batches (id, consumer, processed_at, message_ids, logs)
select (c.number << 40) + b.id, c.number, b.processed_at, b.message_ids, b.logs
from settle_processed_batches_before b join settle_consumers c using (consumer) order by 1;
drop table settle_processed_batches_before;

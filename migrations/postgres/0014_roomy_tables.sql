-- PostgreSQL plans a statement for the size that its tables have at that moment, and keeps the plan. A table of a page or
-- two it reads whole; when many rows come after that, each look reads them all, until the table is analysed. So tables that
-- are empty at times and full at others never get that small: they begin with 16 pages, and vacuum leaves those to them.
alter table settle.processed_events   set (vacuum_truncate = off);
alter table settle.processed_batches  set (vacuum_truncate = off);
alter table settle.parked_keys        set (vacuum_truncate = off);
alter table settle.parked_messages    set (vacuum_truncate = off);
alter table settle.dlq_events         set (vacuum_truncate = off);
alter table settle.outbox_held        set (vacuum_truncate = off);
alter table settle.idempotency_keys   set (vacuum_truncate = off);
alter table settle.idempotency_claims set (vacuum_truncate = off);
alter table settle.locks              set (vacuum_truncate = off);
alter table settle.webhook_events     set (vacuum_truncate = off);
alter table settle.webhook_keys       set (vacuum_truncate = off);
alter table settle.reservations       set (vacuum_truncate = off);
alter table settle.reservation_lines  set (vacuum_truncate = off);

-- Rows of a kilobyte, which nobody ever sees, take the room; they use up no numbers.
insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)
select 'settle:room', n, repeat(' ', 1000), '', 0 from generate_series(1, 112) n;
delete from settle.processed_events where consumer = 'settle:room';

insert into settle.processed_batches (id, consumer, processed_at, message_ids, logs) overriding system value
select -n, 'settle:room', 0, repeat(' ', 1000), '' from generate_series(1, 112) n;
delete from settle.processed_batches where consumer = 'settle:room';

insert into settle.parked_keys (consumer, topic, message_key, single)
select 'settle:room', '', n, repeat(' ', 1000) from generate_series(1, 112) n;
delete from settle.parked_keys where consumer = 'settle:room';

insert into settle.parked_messages (id, consumer, topic, message_key, single, attempts, history, log, position, message_id,
  source, event_type, subject, content_type, event_time, extensions, payload) overriding system value
select -n, 'settle:room', '', '', '', 0, repeat(' ', 1000), '', 0, '', '', '', '', '', 0, '', '' from generate_series(1, 112) n;
delete from settle.parked_messages where id < 0;

insert into settle.dlq_events (id, consumer, consumer_version, reason, error, attempts, history, failed_at, blocks_key, topic,
  message_key, log, position, message_id, source, event_type, subject, content_type, event_time, extensions, payload)
  overriding system value
select -n, 'settle:room', '', '', repeat(' ', 1000), 0, '', 0, false, '', '', '', 0, '', '', '', '', '', 0, '', ''
from generate_series(1, 112) n;
delete from settle.dlq_events where id < 0;

insert into settle.outbox_held (seq, tick, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type,
  headers, created_at, status, blocks, attempts, next_at, payload)
select -n, 0, 0, '00000000-0000-0000-0000-000000000000', '', '', '', '', '', repeat(' ', 1000), 0, 'FAILED', false, 0, 0, ''
from generate_series(1, 112) n;
delete from settle.outbox_held where seq between -112 and -1;

insert into settle.idempotency_keys (identity, service, run, fingerprint, answered_at, expires_at, status, headers, body,
  response_hash)
select sha256(convert_to('settle:room ' || n, 'UTF8')), 'settle:room', repeat(' ', 1000), '', 0, 0, 0, '', '', ''
from generate_series(1, 112) n;
delete from settle.idempotency_keys where service = 'settle:room' and expires_at = 0;

insert into settle.idempotency_claims (identity, service, run, epoch, fingerprint, claimed_at, lease_until, expires_at)
select sha256(convert_to('settle:room ' || n, 'UTF8')), 'settle:room', repeat(' ', 1000), 0, '', 0, 0, 0
from generate_series(1, 112) n;
delete from settle.idempotency_claims where service = 'settle:room' and expires_at = 0;

insert into settle.locks (name, owner, epoch, held_until)
select 'settle:room ' || n, repeat(' ', 1000), 0, 0 from generate_series(1, 112) n;
delete from settle.locks where name in (select 'settle:room ' || n from generate_series(1, 112) n);

insert into settle.webhook_events (id, source, event_id, event_type, event_key, received_at, newest_only, headers, body, status,
  waits_since, finished_at) overriding system value
select -n, 'settle:room', n, '', '', 0, false, repeat(' ', 1000), '', 'APPLIED', 0, 0 from generate_series(1, 112) n;
delete from settle.webhook_events where id < 0;

insert into settle.webhook_keys (source, event_key, touched_at)
select 'settle:room', n || repeat(' ', 1000), 0 from generate_series(1, 112) n;
delete from settle.webhook_keys where source = 'settle:room';

insert into settle.reservations (resource, id, created_at, expires_at, release_at)
select 'settle:room', n || repeat(' ', 1000), 0, 0, 0 from generate_series(1, 112) n;
delete from settle.reservations where resource = 'settle:room';

insert into settle.reservation_lines (resource, reservation, item, amount, is_number)
select 'settle:room', n || repeat(' ', 1000), '', 1, false from generate_series(1, 112) n;
delete from settle.reservation_lines where resource = 'settle:room';

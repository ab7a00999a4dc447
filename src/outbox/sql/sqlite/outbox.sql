-- name: insert_event
insert into settle_outbox (lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type,
                           headers, created_at, payload, deliver_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- There is one writer at a time anyway.
-- name: lock_key
select $1

-- name: read_identity
select database_id, generation from settle_identity

-- name: read_head
select coalesce((select max(seq) from settle_outbox), 0) as newest, (select seq_high from settle_outbox_tick) as ticked

-- name: raise_tick
update settle_outbox_tick set seq_high = max(seq_high, coalesce((select max(seq) from settle_outbox), 0))
returning seq_high

-- Sizes first: payloads are read only for what fits into the batch. $3 is the mask of shares. What is held has its own
-- way; only after a restore a window meets it again.
-- name: measure_window
select seq, length(payload) as bytes from settle_outbox
where seq > $1 and seq <= $2 and ($3 >> (lane & 15)) & 1
  and not exists (select 1 from settle_outbox_held h where h.seq = settle_outbox.seq)
order by seq limit $4

-- name: read_window
select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
       created_at, payload, deliver_at
from settle_outbox
where seq > $1 and seq <= $2 and ($3 >> (lane & 15)) & 1
  and not exists (select 1 from settle_outbox_held h where h.seq = settle_outbox.seq)
order by seq

-- name: note_progress
insert into settle_outbox_progress (shares, position, at) values ($1, $2, $3)

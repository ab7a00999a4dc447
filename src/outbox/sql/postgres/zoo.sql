-- Windows of the bug zoo, with the parameters and columns of read_window. Only the test library uses them.

-- As if transaction ids were the order of the events.
-- name: read_window_by_xid
select row_number() over (order by xid, seq) as seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id,
       content_type, headers, created_at, payload, deliver_at
from settle.outbox
where pg_visible_in_snapshot(xid, (select snap from settle.outbox_ticks where n = $2))
  and not pg_visible_in_snapshot(xid, (select snap from settle.outbox_ticks where n = $1))
  and seq > $3::bigint and ($4::integer >> (lane & 15)) & 1 = 1
order by 1 limit $5

-- As if the highest number that was seen were the cursor.
-- name: read_window_by_number
select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, created_at,
       payload, deliver_at
from settle.outbox
where pg_visible_in_snapshot(xid, (select snap from settle.outbox_ticks where n = $2))
  and seq > (select coalesce(max(o.seq), 0) from settle.outbox o
             where pg_visible_in_snapshot(o.xid, (select snap from settle.outbox_ticks where n = $1)))
  and seq > $3::bigint and ($4::integer >> (lane & 15)) & 1 = 1
order by seq limit $5

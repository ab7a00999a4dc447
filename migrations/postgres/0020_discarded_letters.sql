-- A dead letter that an operator has discarded keeps its row, and says when and why.
alter table settle.dlq_events add column discarded_at bigint;  -- microseconds since 1970
alter table settle.dlq_events add column discard_reason text;  -- in the words of whoever discarded it

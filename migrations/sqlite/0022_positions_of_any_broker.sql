-- A position in a broker's log is what that broker makes of it, not always a number: text that sorts as positions do
-- (hexadecimal digits of their bytes), and where people read it, text as they know it.
alter table settle_settled_logs add column position_text text not null default '';
update settle_settled_logs set position_text = case when position < 0 then '' else printf('%016x', position) end;
alter table settle_settled_logs drop column position;
alter table settle_settled_logs rename column position_text to position;

alter table settle_parked_messages add column position_text text not null default '';
update settle_parked_messages set position_text = position;
alter table settle_parked_messages drop column position;
alter table settle_parked_messages rename column position_text to position;

alter table settle_dlq_events add column position_text text not null default '';
update settle_dlq_events set position_text = position;
alter table settle_dlq_events drop column position;
alter table settle_dlq_events rename column position_text to position;

-- Epochs of fences are minted here, for whichever broker. The owner is an id that its holder has made for one
-- assignment of the partition.
alter table settle_consumer_fences add column owner text not null default '';

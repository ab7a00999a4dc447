-- A position in a broker's log is what that broker makes of it, not always a number: text that sorts as positions do
-- (hexadecimal digits of their bytes), and where people read it, text as they know it. New columns, because a change of
-- type would write the tables anew and take the room from them that they were given before (0014).
alter table settle.settled_logs add column position_text text collate "C" not null default '';
update settle.settled_logs set position_text = lpad(to_hex(position), 16, '0') where position >= 0;
alter table settle.settled_logs drop column position;
alter table settle.settled_logs rename column position_text to position;

alter table settle.parked_messages add column position_text text not null default '';
update settle.parked_messages set position_text = position::text;
alter table settle.parked_messages drop column position;
alter table settle.parked_messages rename column position_text to position;

alter table settle.dlq_events add column position_text text not null default '';
update settle.dlq_events set position_text = position::text;
alter table settle.dlq_events drop column position;
alter table settle.dlq_events rename column position_text to position;

-- Epochs of fences are minted here, for whichever broker. The owner is an id that its holder has made for one
-- assignment of the partition.
alter table settle.consumer_fences add column owner text not null default '';

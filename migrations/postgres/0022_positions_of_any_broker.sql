-- A position in a broker's log is what that broker makes of it, not always a number: text that sorts as positions do
-- (hexadecimal digits of their bytes), and where people read it, text as they know it.
alter table settle.settled_logs alter column position type text collate "C"
  using case when position < 0 then '' else lpad(to_hex(position), 16, '0') end;
alter table settle.parked_messages alter column position type text using position::text;
alter table settle.dlq_events alter column position type text using position::text;

-- Epochs of fences are minted here, for whichever broker. The owner is an id that its holder has made for one
-- assignment of the partition.
alter table settle.consumer_fences add column owner text not null default '';

-- What decides about a message that has failed is counted in columns. Until now it was read from the history, which
-- keeps the last hundred failures and may hold any text.

-- Of the attempts, those for reasons that were not expected to pass: they are limited. Until now these were the ones
-- of class poison in the history, or all attempts if it holds no others. A quote inside an error is stored with a
-- backslash, so nothing else in a history reads like these members of it. A process of an older version that still
-- runs does not count here: a message gets an attempt more for each that it has failed there.
alter table settle.parked_messages add column charged integer not null default 0;
update settle.parked_messages set charged =
  case when history like '%"class":"transient"%' or history like '%"class":"outage"%'
         or history like '%"class":"permanent"%'
       then (length(history) - length(replace(history, '"class":"poison"', ''))) / length('"class":"poison"')
       else attempts end;

-- How often the replay that is under way was begun after a process had ended. Until now each was a line of the history.
-- A process of an older version that still runs writes that line alone: what it notes is not counted.
alter table settle.dlq_events add column starts integer not null default 0;
update settle.dlq_events set starts =
  (length(history)
   - length(replace(history, '"error":"replay ' || replays || ' begins after a process has ended"', '')))
  / length('"error":"replay ' || replays || ' begins after a process has ended"')
where status = 'REPLAYING';

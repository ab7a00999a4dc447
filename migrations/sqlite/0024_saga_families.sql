-- Sagas that another one has started: found by the row of its journal that waits for them.
create index settle_sagas_parent on settle_sagas (parent_no, parent_n) where parent_no is not null;

-- What whoever started it was caused by, as JSON: the events of its steps carry it on. Null: nothing.
alter table settle_sagas add column origin text;

-- An event that is held back holds back those of its topic and key: no broker keeps an order across topics.
drop index settle_outbox_held_key;
create index settle_outbox_held_key on settle_outbox_held (lane, aggregate_id, topic, tick, seq) where blocks;

-- What /metrics reads. None of these touches a payload. $1 where a list is read: the most rows.

-- name: count_relays
select count(*) from settle_members where scope = 'outbox' and lease_until > $1

-- name: count_messages
select t.name, (select count(*) from broker_messages m where m.topic = t.topic)
from broker_topics t order by t.topic limit $1

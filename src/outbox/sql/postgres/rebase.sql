-- After a restore or a failover: every event that is not published gets a new number and a new transaction.
-- name: rebase_outbox
select settle.rebase_outbox() as waiting

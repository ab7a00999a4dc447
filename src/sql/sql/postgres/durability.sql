-- A handler that has lowered synchronous_commit, by whatever means, must not make the commit of its claim less durable
-- than its server is set to: whoever sent the message is told next that it is done. Sent with the commit. Not only for
-- this transaction: others will have the session.
-- name: keep_durable
set synchronous_commit to default

-- After a commit that may not have reached its synchronous standbys: the commit of this comes behind it, waits for the same
-- ones, and so tells that the earlier one has arrived. A read alone would not wait.
-- name: confirm_replicated
select pg_logical_emit_message(true, 'settle', '')

-- A handler that has lowered synchronous_commit, by whatever means, must not make the claims of the batch less
-- durable than its server is set to: once they are committed, the messages are acknowledged. Sent with the commit.
-- name: keep_durable
set local synchronous_commit to default

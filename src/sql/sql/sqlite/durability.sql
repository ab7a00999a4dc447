-- Nothing to do: the driver refuses the pragmas that would make a commit less durable.
-- name: keep_durable
select 1

-- name: confirm_replicated
select 1

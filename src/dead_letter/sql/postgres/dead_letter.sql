-- name: read_letter_status
select status from settle.dlq_events where id = $1

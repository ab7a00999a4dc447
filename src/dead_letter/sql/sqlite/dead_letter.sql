-- name: read_letter_status
select status from settle_dlq_events where id = $1

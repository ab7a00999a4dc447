-- As 0015: what PostgreSQL reads again for every batch of claims and every batch of completions.
alter table settle.idempotency_claims drop constraint idempotency_claims_check;

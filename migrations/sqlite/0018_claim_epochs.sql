-- Epochs of claims: the clock in microseconds, but above every one that has gone. A claim that was released or forgotten
-- leaves no row to count from, and the clock may have been set back since.
create table settle_claim_epoch (
  one          integer primary key check (one = 1),
  highest_gone integer not null
) strict;
insert into settle_claim_epoch (one, highest_gone) values (1, 0);

create trigger settle_idempotency_claims_gone after delete on settle_idempotency_claims
when old.epoch > (select highest_gone from settle_claim_epoch)
begin
  update settle_claim_epoch set highest_gone = old.epoch;
end;

-- What the claimer lets operators see of the request: a JSON object of texts, or empty.
alter table settle_idempotency_claims add column about text not null default '';

-- The participant's guard for programs in any language, as settle::participate has it (src/saga/participate.cpp):
--   select outcome, answer from settle.participate(saga, step, 'do', epoch)
-- in the transaction of the work, and after it settle.record_participation(saga, step, 'do', answer).
-- Their owner's rights and a fixed search path: callers need no right on the table.
create function settle.participate(saga uuid, step text, op text, epoch bigint, out outcome text, out answer bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  code smallint := case participate.op when 'do' then 1 when 'undo' then 2 end;
  now_us bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  never_came boolean;
  done_by smallint;
begin
  if participate.saga is null or participate.epoch is null or code is null
     or coalesce(octet_length(participate.step), 0) not between 1 and 1000 then
    raise exception 'settle.participate needs a saga, a step of 1 to 1,000 bytes, ''do'' or ''undo'', and an epoch'
      using errcode = 'invalid_parameter_value';
  end if;
  -- The saga's own row has the highest epoch that was here. Whoever changes it waits for others of this saga.
  insert into settle.saga_guards as g (saga, step, op, by_op, epoch, at)
  values (participate.saga, '', 0, 0, participate.epoch, now_us)
  on conflict (saga, step, op) do update set epoch = excluded.epoch, at = excluded.at where g.epoch <= excluded.epoch;
  if not found then
    outcome := 'stale';
    return;
  end if;
  -- An undo inserts the row of its action, too: if it could, the action never came, and is late when it does.
  insert into settle.saga_guards (saga, step, op, by_op, epoch, at)
  values (participate.saga, participate.step, 1, code, participate.epoch, now_us)
  on conflict (saga, step, op) do nothing;
  never_came := found;
  if code = 2 then
    insert into settle.saga_guards (saga, step, op, by_op, epoch, at)
    values (participate.saga, participate.step, 2, 2, participate.epoch, now_us)
    on conflict (saga, step, op) do nothing;
  end if;
  if found then
    outcome := case when code = 2 and never_came then 'empty' else 'fresh' end;
    return;
  end if;
  select g.by_op into done_by from settle.saga_guards g
  where g.saga = participate.saga and g.step = participate.step and g.op = 1;
  if done_by = 2 then
    outcome := case code when 1 then 'late' else 'empty' end;
    return;
  end if;
  outcome := 'repeated';
  select g.answer into answer from settle.saga_guards g
  where g.saga = participate.saga and g.step = participate.step and g.op = code;
end $$;

create function settle.record_participation(saga uuid, step text, op text, answer bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update settle.saga_guards g set answer = record_participation.answer
  where g.saga = record_participation.saga and g.step = record_participation.step
    and g.op = case record_participation.op when 'do' then 1 when 'undo' then 2 end;
  if not found then
    raise exception 'there is nothing to record an answer for: settle.participate has to come before it'
      using errcode = 'invalid_parameter_value';
  end if;
end $$;

create function settle.record_participation(saga uuid, step text, op text, answer text) returns void
language sql
return settle.record_participation(saga, step, op, pg_catalog.convert_to(answer, 'UTF8'));

revoke all on function settle.participate(uuid, text, text, bigint),
  settle.record_participation(uuid, text, text, bytea), settle.record_participation(uuid, text, text, text) from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'settle_publisher') then
    grant execute on function settle.participate(uuid, text, text, bigint),
      settle.record_participation(uuid, text, text, bytea), settle.record_participation(uuid, text, text, text)
      to settle_publisher;
  end if;
end $$;

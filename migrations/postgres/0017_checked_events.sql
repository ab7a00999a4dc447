-- Other languages publish under the rules of the library: names, headers and size are checked at the call, and refused with
-- the library's words. Rows that programs insert into settle.outbox itself are not checked here, because the library, which has
-- checked its own, inserts the same way; relays rename what such a row should not have.

-- Raises the first thing that is wrong with an event. Only headers and payload may be null.
create function settle.check_event(topic text, event_type text, key text, aggregate_type text, content_type text,
                                    headers jsonb, payload bytea) returns void
language plpgsql as $$
declare
  one record;
  limit_bytes bigint;
begin
  -- what | text | bytes | may be empty
  for one in
    select * from (values (1, 'topic', topic, 255, false), (2, 'event type', event_type, 255, false),
                          (3, 'key', key, 1024, true), (4, 'aggregate type', aggregate_type, 255, true),
                          (5, 'content type', content_type, 255, false)) v(n, what, content, bytes_max, may_be_empty)
    order by n
  loop
    perform settle.check_name(one.what, one.content, one.bytes_max, one.may_be_empty);
  end loop;
  if jsonb_typeof(headers) <> 'object' then
    raise check_violation using message = 'invalid_argument: the headers are no JSON object',
      hint = 'correct the value that the message names';
  end if;
  if headers is not null then
    for one in select h.key, h.value, headers ->> h.key as content from jsonb_each(headers) h order by h.key collate "C" loop
      perform settle.check_name('header name', one.key, 255, false);
      if one.key !~ '^[a-z0-9]+$' then
        raise check_violation using
          message = format('invalid_name: the header ''%s'' is no CloudEvents attribute name: only a-z and 0-9', one.key),
          hint = 'correct the name as the message says';
      end if;
      if jsonb_typeof(one.value) not in ('string', 'number', 'boolean') then
        raise check_violation using message = format('invalid_argument: the value of header ''%s'' is no text', one.key),
          hint = 'correct the value that the message names';
      end if;
      perform settle.check_name(format('value of header ''%s''', one.key), one.content, 8192, true);
    end loop;
    if (select count(*) from jsonb_object_keys(headers)) > 64 then
      raise check_violation using
        message = format('invalid_argument: the event has %s headers, 64 are allowed',
                         (select count(*) from jsonb_object_keys(headers))),
        hint = 'correct the value that the message names';
    end if;
    for one in select k from jsonb_object_keys(headers) k order by k collate "C" loop
      if one.k = any (settle.reserved_headers()) then
        raise check_violation using message = format('invalid_name: the header ''%s'' is set by Settle itself', one.k),
          hint = 'correct the name as the message says';
      end if;
    end loop;
  end if;
  if payload is null then
    raise check_violation using message = 'invalid_argument: the payload is null',
      hint = 'correct the value that the message names';
  end if;
  limit_bytes := greatest(1048576, coalesce(nullif(current_setting('settle.payload_bytes_max', true), ''), '0')::bigint);
  if octet_length(payload) > limit_bytes then
    raise check_violation using
      message = format('payload_too_large: the payload of %s has %s bytes, payload_bytes_max is %s', event_type,
                       octet_length(payload), limit_bytes),
      hint = 'store the document elsewhere and publish its address, or raise payload_bytes_max';
  end if;
end $$;

create function settle.check_name(what text, content text, bytes_max integer, may_be_empty boolean) returns void
language plpgsql as $$
declare
  bytes bytea := convert_to(content, 'UTF8');
begin
  if bytes = '' and not may_be_empty then
    raise check_violation using message = format('invalid_name: the %s is empty', what),
      hint = 'correct the name as the message says';
  end if;
  if octet_length(bytes) > bytes_max then
    raise check_violation using
      message = format('invalid_name: the %s has %s bytes, %s are allowed', what, octet_length(bytes), bytes_max),
      hint = 'correct the name as the message says';
  end if;
  for i in 0..octet_length(bytes) - 1 loop
    if get_byte(bytes, i) < 32 or get_byte(bytes, i) = 127 then
      raise check_violation using
        message = format('invalid_name: the %s has the control character 0x%s at byte %s', what,
                         lpad(to_hex(get_byte(bytes, i)), 2, '0'), i),
        hint = 'correct the name as the message says';
    end if;
  end loop;
end $$;

-- The library's list (src/broker/attribute_names.cpp), without correlationid, causationid, traceparent and tracestate, for
-- which SQL has no other place than headers. A test compares.
create function settle.reserved_headers() returns text[] language sql immutable parallel safe
return array['data', 'datacontenttype', 'dataschema', 'id', 'naturalkey', 'partitionkey', 'sequence', 'settledatabase',
  'settledlqattempts', 'settledlqconsumer', 'settledlqerror', 'settledlqfailedat', 'settledlqoffset', 'settledlqpartition',
  'settledlqreason', 'settledlqtopic', 'settleoutoforder', 'settleplace', 'settlereplay', 'settlereplayfor',
  'settlereplayof', 'source', 'specversion', 'subject', 'time', 'type'];

-- True of nearly every event that is in order; anything else is for check_event to judge: something null, or more headers.
-- One expression, so that it becomes a part of the functions that call it.
create function settle.is_plain_event(topic text, event_type text, key text, aggregate_type text, content_type text,
                                      headers jsonb, payload bytea) returns boolean
language sql immutable parallel safe
return octet_length(topic) between 1 and 255 and octet_length(event_type) between 1 and 255 and octet_length(key) <= 1024
  and octet_length(aggregate_type) <= 255 and octet_length(content_type) between 1 and 255
  and octet_length(payload) <= 1048576
  and topic || event_type || key || aggregate_type || content_type !~ '[\u0001-\u001f\u007f]'
  and (headers is null
       or (octet_length(headers::text) <= 256 and not headers ?| settle.reserved_headers()
           and headers::text ~ '^\{(?:"[a-z0-9]+": "[^"\\\u0001-\u001f\u007f]*"(?:, |\}$))+$'));

create or replace function settle.publish(topic text, event_type text, key text, payload bytea,
                                          aggregate_type text default '', headers jsonb default null,
                                          content_type text default 'application/json', event_id uuid default null,
                                          deliver_at timestamptz default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id uuid := coalesce(event_id, gen_random_uuid());
begin
  if settle.is_plain_event(topic, event_type, key, aggregate_type, content_type, headers, payload) is not true then
    topic := coalesce(topic, '');
    event_type := coalesce(event_type, '');
    key := coalesce(key, '');
    aggregate_type := coalesce(aggregate_type, '');
    content_type := coalesce(content_type, 'application/json');
    perform settle.check_event(topic, event_type, key, aggregate_type, content_type, headers, payload);
  end if;
  insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers,
                             payload, deliver_at)
  values (id, publish.topic, publish.event_type, publish.aggregate_type, publish.key, publish.content_type,
          coalesce(publish.headers::text, ''), publish.payload,
          (extract(epoch from publish.deliver_at) * 1000000)::bigint);
  return id;
end $$;

-- In the place of those with four arguments, which would fit the same calls. Whoever might call them may call these.
alter function settle.publish(text, text, text, jsonb) rename to publish_jsonb_of_0002;
alter function settle.publish(text, text, text, text) rename to publish_text_of_0002;

create function settle.publish(topic text, event_type text, key text, payload jsonb,
                               aggregate_type text default '', headers jsonb default null,
                               content_type text default 'application/json', event_id uuid default null,
                               deliver_at timestamptz default null)
returns uuid language sql
return settle.publish(topic, event_type, key, pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8'), aggregate_type,
                      headers, content_type, event_id, deliver_at);

create function settle.publish(topic text, event_type text, key text, payload text,
                               aggregate_type text default '', headers jsonb default null,
                               content_type text default 'application/json', event_id uuid default null,
                               deliver_at timestamptz default null)
returns uuid language sql
return settle.publish(topic, event_type, key, pg_catalog.convert_to(payload, 'UTF8'), aggregate_type, headers, content_type,
                      event_id, deliver_at);

revoke all on function settle.publish(text, text, text, jsonb, text, jsonb, text, uuid, timestamptz),
  settle.publish(text, text, text, text, text, jsonb, text, uuid, timestamptz) from public;
do $$
declare
  one record;
begin
  for one in
    select case p.proname when 'publish_text_of_0002' then 'text' else 'jsonb' end as payload, a.is_grantable,
           case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
    from pg_proc p cross join lateral aclexplode(p.proacl) a
    where p.pronamespace = 'settle'::regnamespace and p.proname in ('publish_text_of_0002', 'publish_jsonb_of_0002')
      and a.grantee <> p.proowner
  loop
    execute format('grant execute on function settle.publish(text, text, text, %s, text, jsonb, text, uuid, timestamptz) '
                   'to %s%s', one.payload, one.grantee, case when one.is_grantable then ' with grant option' else '' end);
  end loop;
end $$;
drop function settle.publish_jsonb_of_0002(text, text, text, jsonb), settle.publish_text_of_0002(text, text, text, text);

-- Returns the row as it was stored, for INSERT ... RETURNING.
create or replace function settle.insert_outbox_event() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.topic := coalesce(new.topic, '');
  new.event_type := coalesce(new.event_type, '');
  new.aggregate_id := coalesce(new.aggregate_id, '');
  new.aggregate_type := coalesce(new.aggregate_type, '');
  new.headers := coalesce(new.headers, '');
  new.event_id := coalesce(new.event_id, gen_random_uuid());
  if settle.is_plain_event(new.topic, new.event_type, new.aggregate_id, new.aggregate_type, 'application/json',
                           nullif(new.headers, '')::jsonb, new.payload) is not true then
    perform settle.check_event(new.topic, new.event_type, new.aggregate_id, new.aggregate_type, 'application/json',
                               nullif(new.headers, '')::jsonb, new.payload);
  end if;
  insert into settle.outbox (event_id, topic, event_type, aggregate_type, aggregate_id, headers, payload, deliver_at)
  values (new.event_id, new.topic, new.event_type, new.aggregate_type, new.aggregate_id, new.headers, new.payload,
          (extract(epoch from new.deliver_at) * 1000000)::bigint)
  returning seq, to_timestamp(outbox.created_at / 1000000.0) into new.id, new.created_at;
  new.status := 'PENDING';
  new.published_at := null;
  new.attempts := 0;
  new.last_error := null;
  return new;
end $$;

revoke all on function settle.check_event(text, text, text, text, text, jsonb, bytea),
  settle.check_name(text, text, integer, boolean), settle.reserved_headers(),
  settle.is_plain_event(text, text, text, text, text, jsonb, bytea) from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'settle_publisher') then
    -- What the server fills in, and no business data: mappers ask for it with INSERT ... RETURNING.
    grant select (id, event_id, created_at) on settle.outbox_events to settle_publisher;
  else
    raise warning 'the role settle_publisher is not there, and this user may not create it'
      using hint = 'create role settle_publisher nologin; then `settle doctor` prints the rights that it needs';
  end if;
end $$;

-- An event that is held back holds back those of its topic and key: no broker keeps an order across topics.
drop index settle.outbox_held_key;
create index outbox_held_key on settle.outbox_held (lane, aggregate_id, topic, tick, seq) where blocks;

-- Names in answers come with their schema, whatever search path the reader of the answer will have.
-- name: qualify_names
select set_config('search_path', 'pg_catalog', true)

-- Every key that Settle's statements rely on: table, columns, unique. Leaves of the ring have no parent index,
-- so each is looked at by itself.
-- name: missing_keys
with expected(relation, columns, kind) as (
  values ('migrations', 'number', 'primary key'), ('identity', 'one', 'primary key'),
         ('shares', 'scope, share', 'primary key'), ('members', 'scope, member', 'primary key'),
         ('outbox_ticks', 'n', 'primary key'), ('outbox_ticks', 'at', 'index'), ('outbox_ticks', 'seq_high, n', 'index'),
         ('outbox_progress', 'id', 'primary key'), ('outbox_progress', 'tick, "position"', 'index'), ('outbox_leaves', 'slot', 'primary key'),
         ('outbox_held', 'seq', 'primary key'), ('natural_keys', 'event_id', 'primary key'), ('natural_keys', 'created_at', 'index'),
         ('processed_events', 'consumer, message_id', 'primary key'),
         ('consumer_fences', 'consumer, partition', 'primary key'),
         ('processed_batches', 'consumer, id', 'primary key'),
         ('settled_logs', 'consumer, log', 'primary key'),
         ('dedup_horizons', 'consumer, lane, log, source', 'primary key'),
         ('parked_messages', 'consumer, topic, message_key, single, id', 'index'),
         ('parked_keys', 'consumer, topic, message_key, single', 'primary key'), ('parked_keys', 'consumer, next_at', 'index'),
         ('dlq_events', 'id', 'primary key'), ('dlq_events', 'status, id', 'index'), ('dlq_events', 'message_id', 'index'),
         ('idempotency_keys', 'identity', 'primary key'), ('idempotency_keys', 'expires_at', 'index'),
         ('webhook_events', 'id', 'primary key'), ('webhook_events', 'source, event_id', 'unique index'),
         ('webhook_keys', 'source, event_key', 'primary key'), ('webhook_keys', 'touched_at', 'index'),
         ('webhook_horizons', 'source', 'primary key')
  union all
  select 'outbox_' || i, c.columns, c.kind
  from generate_series(0, 7) i, (values ('xid, seq', 'index'), ('seq', 'unique index')) c(columns, kind)),
there as (
  select i.indrelid, i.indisunique, i.indisvalid, i.indexrelid::regclass::text as name,
         (select string_agg(quote_ident(a.attname), ', ' order by k.at)
          from unnest(i.indkey) with ordinality k(number, at)
          join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number) as columns
  from pg_catalog.pg_index i where i.indpred is null)
select e.relation, e.columns, e.kind, c.oid is not null as is_there,
       (select min(t.name) from there t
        where t.indrelid = c.oid and t.columns = e.columns and not t.indisvalid) as invalid_index
from expected e
left join pg_catalog.pg_namespace n on n.nspname = 'settle'
left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.relation
where not exists (select from there t where t.indrelid = c.oid and t.columns = e.columns and t.indisvalid
                  and (t.indisunique or e.kind = 'index'))
order by 1, 2

-- Tables that vacuum must not touch, or that a crash empties.
-- name: odd_tables
select c.oid::regclass::text as relation, c.relpersistence = 'u' as unlogged,
       exists (select from pg_catalog.pg_options_to_table(c.reloptions) o
               where o.option_name = 'autovacuum_enabled' and o.option_value in ('false', 'off', 'no', '0')) as autovacuum_off
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relkind = 'r'
  and (c.relpersistence = 'u'
       or exists (select from pg_catalog.pg_options_to_table(c.reloptions) o
                  where o.option_name = 'autovacuum_enabled' and o.option_value in ('false', 'off', 'no', '0')))
order by 1

-- name: odd_sequences
select c.oid::regclass::text as relation, s.seqcache as cache, s.seqincrement as increment, s.seqcycle as cycles
from pg_catalog.pg_sequence s join pg_catalog.pg_class c on c.oid = s.seqrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'settle' and c.relname in ('outbox_seq', 'outbox_ring')
  and (s.seqcache <> 1 or s.seqincrement <> 1 or s.seqcycle)
order by 1

-- Rights that nobody but the owner needs: whoever has them can write what relays rely on.
-- name: loose_grants
select c.oid::regclass::text as relation, case when a.grantee = 0 then 'public' else quote_ident(r.rolname) end as role,
       lower(string_agg(a.privilege_type, ', ' order by a.privilege_type)) as rights,
       case c.relkind when 'S' then 'sequence ' else '' end as kind
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral aclexplode(c.relacl) a
left join pg_catalog.pg_roles r on r.oid = a.grantee
where n.nspname = 'settle' and a.grantee <> c.relowner
  and ((c.relname ~ '^outbox(_[0-7])?$' and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'))
       or (c.relname = 'outbox_ring' and a.privilege_type in ('USAGE', 'UPDATE'))
       or (c.relname = 'outbox_seq' and a.privilege_type = 'UPDATE'))
group by 1, 2, 4 order by 1, 2

-- name: publisher_role
select r.oid is not null as is_there,
       coalesce((select bool_and(has_function_privilege(r.oid, p.oid, 'execute'))
                 from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
                 where n.nspname = 'settle' and p.proname in ('publish', 'participate', 'record_participation'))
                and has_schema_privilege(r.oid, 'settle', 'usage')
                and has_column_privilege(r.oid, 'settle.outbox', 'payload', 'insert')
                and has_column_privilege(r.oid, 'settle.outbox_events', 'event_id', 'select')
                and has_sequence_privilege(r.oid, 'settle.outbox_seq', 'usage')
                and has_sequence_privilege(r.oid, 'settle.outbox_ring', 'select'), false) as granted,
       coalesce((select string_agg(quote_ident(m.rolname), ', ' order by m.rolname)
                 from pg_catalog.pg_auth_members g join pg_catalog.pg_roles m on m.oid = g.member
                 where g.roleid = r.oid), '') as members,
       (select string_agg(p.oid::regprocedure::text, ', ' order by p.oid)
        from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'settle' and p.proname in ('lane', 'publish', 'participate', 'record_participation')) as functions
from (select 1) one left join pg_catalog.pg_roles r on r.rolname = 'settle_publisher'

#include "saga/seams.hpp"

#include <utility>

#include "base/zoo.hpp"
#include "queries/saga.hpp"
#include "settle/storable.hpp"

namespace settle::sagas {
namespace {

thread_local std::string unlocked = "[]";  // by early_event_race, until it reads

// Not on SQLite, where the one writer is the lock.
constexpr query lock_and_find_pairs{"zoo.lock_and_find_pairs", "", R"sql(
with locks as materialized (
  select count(pg_advisory_xact_lock(k::bigint)) as taken from jsonb_array_elements_text($3::jsonb) k),
meeting as materialized (
  select x ->> 0 as type, x ->> 1 as key from jsonb_array_elements($2::jsonb) x),
e as (select m.id, m.type, m.key, m.payload, row_number() over (partition by m.type, m.key order by m.id) as place
      from settle.saga_mailbox m join meeting using (type, key) where m.host = $1 and m.no is null),
w as (select x.no, x.n, x.type, x.key, row_number() over (partition by x.type, x.key order by x.no, x.n) as place
      from settle.saga_waits x join meeting using (type, key) where x.host = $1)
select e.id, w.no, w.n, e.payload from locks, e join w using (type, key, place) where locks.taken >= 0
order by w.no, w.n
)sql"};

constexpr query write_over_wakes{"zoo.write_over_wakes", R"sql(
update settle_sagas set status = $3,
  due_at = case when $9 is not null or $2 is null then null else $4 end, wanted = null,
  attempts = $5, calling = $6, last_error = $7, result = $8, ended_at = $9, updated_at = $10
where no = $1
)sql",
                                 R"sql(
update settle.sagas set status = $3,
  due_at = case when $9::bigint is not null or $2::integer is null then null else $4::bigint end, wanted = null,
  attempts = $5, calling = $6::integer = 1, last_error = $7, result = $8, ended_at = $9, updated_at = $10
where no = $1
)sql"};

}  // namespace

void lock_keys(transaction& tx, const std::string& numbers) {
  if (zoo::has(zoo::bug::early_event_race))
    unlocked = numbers;
  else
    tx.execute(queries::saga::lock_keys, {numbers});
}

result find_pairs(transaction& tx, const std::string& host, const std::string& keys) {
  if (zoo::has(zoo::bug::early_event_race))
    return tx.execute(lock_and_find_pairs, {host, keys, std::exchange(unlocked, "[]")});
  return tx.execute(queries::saga::find_pairs, {host, keys});
}

journal_row replayed(journal_row row, timestamp now) {
  const bool timed = (row.kind == row_kind::timer || row.kind == row_kind::waiting) && row.result;
  if (zoo::has(zoo::bug::deadline_recomputed) && timed)
    row.result = detail::store(now + (detail::read_stored<timestamp>(*row.result) - row.at));
  return row;
}

bool doubt_counts_as_done() { return !zoo::has(zoo::bug::undo_skips_the_unknown); }

bool frames_end_with_their_transaction() { return !zoo::has(zoo::bug::frames_kept_after_failure); }

bool doubt_raises_fences() { return !zoo::has(zoo::bug::doubt_read_without_fence); }

std::string key_of_attempt(std::string key_of_call, std::int64_t epoch) {
  if (zoo::has(zoo::bug::key_of_the_owner)) key_of_call += '-' + std::to_string(epoch);
  return key_of_call;
}

const query& writing_saga() {
  return zoo::has(zoo::bug::wake_up_overwritten) ? write_over_wakes : queries::saga::write_saga;
}

}  // namespace settle::sagas

#include "settle/once.hpp"

#include <optional>
#include <utility>

#include "base/doubt.hpp"
#include "base/zoo.hpp"
#include "once/claim_rules.hpp"
#include "once/forgetting.hpp"
#include "once/in_flight.hpp"
#include "once/key.hpp"
#include "once/refusals.hpp"
#include "queries/once.hpp"
#include "queries/sql.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "sql/undo_point.hpp"

namespace settle::inline v0 {
namespace {

constexpr int runs_max = 5;          // of one call, each undone because another one was faster
constexpr int open_slices_max = 10;  // with claims that stay, for the others that are due

struct opened_key {
  std::string identity;
  std::string fingerprint;
  std::string run;              // this execution
  std::string durability = {};  // of the commit, as it was before the work
  bool joined = false;          // the transaction, and its session, are the caller's
};

opened_key open(const environment& env, const request_identity& who, const once_work& work,
                const once_options& options) {
  keys::check_identity(who);
  if (!work) throw error(errc::invalid_argument, "once() was given no work: the function is empty");
  if (options.keep <= duration::zero())
    throw error(errc::invalid_argument, "once_options.keep must be positive");
  return {keys::identity_of(who), keys::fingerprint_of(options.fingerprint), env.ids->next().text()};
}

void check(const answer& of, const once_options& options) {
  keys::check_answer(of, options.answer_bytes_max, "once_options.answer_bytes_max");
}

statement record_of(const environment& env, const request_identity& who, const opened_key& key,
                    const answer& what, const once_options& options) {
  const auto now = env.now();
  parameters row;
  row.reserve(12);
  row.emplace_back(blob{key.identity});
  row.emplace_back(who.service);
  row.emplace_back(key.run);
  row.emplace_back(blob{key.fingerprint});
  row.emplace_back(now);
  row.emplace_back(now + options.keep);
  keys::append_answer(row, what);
  row.emplace_back(key.durability);
  row.emplace_back(key.joined);
  if (zoo::has(zoo::bug::key_checked_then_inserted))
    return {queries::once::record_key_if_new, std::move(row)};
  return {queries::once::record_key, std::move(row)};
}

once_result answered(const keys::stored_answer& known, const opened_key& key) {
  if (known.run == key.run) return {once_outcome::executed, known.what};
  if (!keys::same_request(known.fingerprint, key.fingerprint)) return keys::refused(once_outcome::mismatch);
  return {once_outcome::replayed, known.what};
}

// What stands in the way of a run.
enum class obstacle { none, record, holder, holder_of_another };

// Somebody else holds the key. If this caller got the lock of its own fingerprint, that one may be asking
// for something else: its locks tell. Who clicks twice does not get that far.
obstacle behind_holder(transaction& tx, const opened_key& key, bool shown) {
  if (!shown) return obstacle::holder;
  const auto differs = tx.execute(queries::once::holder_differs,
                                  {keys::lock_number(key.identity), keys::shown_number(key.fingerprint)});
  return differs[0][queries::once::holder_differs_columns::differs].integer() != 0
             ? obstacle::holder_of_another
             : obstacle::holder;
}

obstacle look(transaction& tx, opened_key& key) {
  value shown;
  if (!key.fingerprint.empty()) shown = value(keys::shown_number(key.fingerprint));
  const auto found = tx.execute(queries::once::open_key, {blob{key.identity}, keys::lock_number(key.identity),
                                                          keys::shown_beside(key.identity), shown});
  namespace columns = queries::once::open_key_columns;
  const auto row = found[0];
  if (row[columns::recorded].integer() != 0) return obstacle::record;
  key.durability = row[columns::durability].text();
  const auto& is_shown = row[columns::shown];
  if (row[columns::ours].integer() == 0 && !zoo::has(zoo::bug::key_checked_then_inserted))
    return behind_holder(tx, key, !is_shown.is_null() && is_shown.integer() != 0);
  return obstacle::none;
}

// Of an obstacle other than a record.
once_result refused(obstacle by) {
  return keys::refused(by == obstacle::holder_of_another ? once_outcome::mismatch : once_outcome::in_flight);
}

statement read_of(const opened_key& key) { return {queries::once::read_key, {blob{key.identity}}}; }

std::optional<once_result> answered_by(const result& record, const opened_key& key) {
  namespace columns = queries::once::read_key_columns;
  constexpr keys::stored_columns answer{columns::run,     columns::fingerprint, columns::status,
                                        columns::headers, columns::body,        columns::response_hash};
  const auto known = keys::read_stored(record, answer);
  return known ? std::optional(answered(*known, key)) : std::nullopt;
}

// Its own transaction may or may not have committed, or somebody else's record has refused it. The lock waits
// until the one in doubt has ended; the look after it sees what that has left, and the commit after that says
// that it will stay. Nobody may stop it: whoever waits learns how it ended.
std::optional<once_result> resolve(database& db, const opened_key& key) {
  auto tx = db.begin();
  tx.execute(queries::once::wait_for_key, {keys::lock_number(key.identity)});
  auto known = answered_by(tx.execute(read_of(key)), key);
  if (known) tx.commit_with({queries::sql::confirm_replicated, {}}, "");
  return known;
}

class run_in_this_process {
 public:
  run_in_this_process(const database& db, const opened_key& key) : db_(db), key_(key) {
    entered_ = keys::in_flight::of_this_process().enter(db, key.identity, key.fingerprint);
  }
  ~run_in_this_process() {
    if (entered_ == keys::in_flight::entry::first)
      keys::in_flight::of_this_process().leave(db_, key_.identity);
  }
  run_in_this_process(const run_in_this_process&) = delete;
  run_in_this_process& operator=(const run_in_this_process&) = delete;

  keys::in_flight::entry entered() const { return entered_; }

 private:
  const database& db_;
  const opened_key& key_;
  keys::in_flight::entry entered_;
};

// While the work of a transaction runs that was begun here: a key that joins it need not treat the session as
// somebody else's.
class own_session {
 public:
  explicit own_session(const transaction& of) : before_(std::exchange(begun_here, &of)) {}
  ~own_session() { begun_here = before_; }
  own_session(const own_session&) = delete;
  own_session& operator=(const own_session&) = delete;
  static bool has(const transaction& tx) { return begun_here == &tx; }

 private:
  static inline thread_local const transaction* begun_here = nullptr;
  const transaction* before_;
};

answer run(const once_work& work, transaction& tx) {
  const own_session ours(tx);
  return work(tx);
}

void count(const environment& env, const request_identity& who, once_outcome of) {
  env.counters->add("settle_once_total",
                    {{"service", std::string(who.service)}, {"outcome", std::string(to_string(of))}});
}

// The record commits with the effects. Refused: somebody else has committed the same key, or the commit has
// failed for a reason of its own; the record tells.
std::optional<once_result> commit_record(database& db, owned_transaction& tx, const statement& record,
                                         const opened_key& key) {
  try {
    tx.commit_with(record, "once.commit");
  } catch (const error& e) {
    if (e.outcome_unknown())  // if nothing is found, it certainly did not commit
      return found_out(e, [&] { return resolve(db, key); });
    if (e.code() != errc::constraint_violated) throw;
    if (auto known = resolve(db, key)) return known;
    throw;
  }
  return once_result{once_outcome::executed, {}};
}

// A record is read with the end of the transaction, in one round trip. It commits nothing, so nothing is in
// doubt if that is lost. Nothing: the record has just been forgotten.
std::optional<once_result> turned_away(owned_transaction& tx, const opened_key& key, obstacle by) {
  if (by != obstacle::record) return refused(by);
  try {
    return answered_by(tx.commit_with(read_of(key), ""), key);
  } catch (const error& e) {
    if (!e.outcome_unknown()) throw;
    throw error(e.code(), e.what());
  }
}

// Nothing: it was undone, and may be tried again.
std::optional<once_result> try_once(database& db, const request_identity& who, opened_key& key,
                                    const once_work& work, const once_options& options,
                                    const std::stop_token& cancel) {
  std::optional<owned_transaction> tx(db.begin(cancel));
  if (const auto by = look(*tx, key); by != obstacle::none) return turned_away(*tx, key, by);
  auto what = run(work, *tx);
  check(what, options);
  if (what.keep != keeps::everything) {
    tx.reset();
    if (what.keep == keeps::nothing) return once_result{once_outcome::executed, std::move(what)};
    tx.emplace(db.begin(cancel));
    if (const auto by = look(*tx, key); by != obstacle::none) return turned_away(*tx, key, by);
  }
  if (zoo::has(zoo::bug::key_recorded_after_commit)) {
    tx->commit("once.effects");
    tx.emplace(db.begin(cancel));
  }
  auto ended = commit_record(db, *tx, record_of(db.env(), who, key, what, options), key);
  if (ended && ended->outcome == once_outcome::executed) ended->what = std::move(what);
  return ended;
}

bool is_refused(transaction& tx, const statement& record) {
  try {
    tx.execute(record);
  } catch (const error& e) {
    if (e.code() != errc::constraint_violated) throw;
    return true;
  }
  return false;
}

// Of a record that was refused, or of something that the work had posted before it; all of that is undone.
// Nothing: nobody else has recorded this key, so the work is to blame.
std::optional<once_result> known_by_refusal(transaction& tx, const opened_key& key, const statement& record) {
  if (auto known = answered_by(tx.execute(read_of(key)), key)) return known;
  if (is_refused(tx, record))
    throw error(errc::store_busy,
                "this key was recorded after the snapshot of this transaction: roll back and repeat it");
  return std::nullopt;
}

// What the work undoes, or a failure of it or of its record, leaves the caller's own part of the transaction
// as it was.
once_result run_undoable(transaction& tx, const request_identity& who, const opened_key& key,
                         const once_work& work, const once_options& options) {
  sql::undo_point before(tx);
  auto what = work(tx);
  check(what, options);
  if (what.keep != keeps::everything) before.go_back();
  if (what.keep != keeps::nothing) {
    const auto record = record_of(tx.env(), who, key, what, options);
    try {
      tx.execute(record);
    } catch (const error& e) {
      if (e.code() != errc::constraint_violated) throw;
      before.go_back();
      auto known = known_by_refusal(tx, key, record);
      if (!known) throw;
      before.leave();
      return std::move(*known);
    }
  }
  before.leave();
  return {once_outcome::executed, std::move(what)};
}

// The same in the caller's transaction, which goes on.
once_result turned_away_in(transaction& tx, const opened_key& key, obstacle by) {
  if (by != obstacle::record) return refused(by);
  if (auto known = answered_by(tx.execute(read_of(key)), key)) return std::move(*known);
  throw error(errc::store_busy,
              "the record of this key was forgotten while it was read: roll back and repeat the transaction");
}

}  // namespace

std::string_view to_string(once_outcome of) {
  switch (of) {
    case once_outcome::executed:
      return "executed";
    case once_outcome::replayed:
      return "replayed";
    case once_outcome::in_flight:
      return "in_flight";
    case once_outcome::mismatch:
      return "mismatch";
  }
  return "unknown";
}

once_result once(database& db, const request_identity& who, const once_work& work,
                 const once_options& options, std::stop_token cancel) {
  auto key = open(db.env(), who, work, options);
  const run_in_this_process here(db, key);
  const auto told = [&](once_result result) {
    count(db.env(), who, result.outcome);
    return result;
  };
  if (here.entered() == keys::in_flight::entry::second) return told(keys::refused(once_outcome::in_flight));
  if (here.entered() == keys::in_flight::entry::mismatch) return told(keys::refused(once_outcome::mismatch));
  for (int run = 1;; ++run) {
    if (auto result = try_once(db, who, key, work, options, cancel)) return told(std::move(*result));
    if (run >= runs_max)
      throw error(errc::store_unavailable, "the commit was lost " + std::to_string(run) +
                                               " times; nothing of this request has happened");
  }
}

once_result once(transaction& tx, const request_identity& who, const once_work& work,
                 const once_options& options) {
  auto key = open(tx.env(), who, work, options);
  key.joined = !own_session::has(tx);
  const auto by = look(tx, key);
  auto result =
      by == obstacle::none ? run_undoable(tx, who, key, work, options) : turned_away_in(tx, key, by);
  count(tx.env(), who, result.outcome);
  return result;
}

std::int64_t forget_expired_keys(database& db, std::int64_t at_most) {
  std::int64_t gone = 0;
  for (int slice = 1; slice <= open_slices_max; ++slice) {
    const auto found = keys::forget_slice(db, at_most - gone);
    gone += found.gone;
    if (gone >= at_most || found.put_off == 0) break;
  }
  return gone;
}

}  // namespace settle::inline v0

namespace settle::keys {

forgotten forget_slice(database& db, std::int64_t at_most) {
  auto tx = db.begin();
  const auto now = db.env().now();
  const auto again_at = expiry(now, std::chrono::hours(24));
  const auto put_off = tx.execute(queries::once::put_off_open_claims, {now, at_most, again_at}).affected();
  const auto gone = tx.execute(queries::once::forget_expired, {now, at_most}).affected() +
                    tx.execute(queries::once::forget_expired_claims, {now, at_most}).affected();
  tx.commit("once.forget");
  return {gone, put_off};
}

}  // namespace settle::keys

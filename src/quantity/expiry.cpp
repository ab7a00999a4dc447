// Giving back what nobody has confirmed in time, and forgetting what has ended long ago.
#include <algorithm>
#include <set>

#include "base/timer.hpp"
#include "quantity/engine.hpp"
#include "queries/quantity.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration postponed_for = std::chrono::minutes(1);
constexpr duration held_up_for = std::chrono::seconds(10);
// So long a batch waits for an item that somebody else has locked: buyers of its other items wait too.
constexpr std::chrono::milliseconds lock_wait{100};
// One reservation, where an item is only busy: it gets its turn.
constexpr std::chrono::milliseconds lock_wait_alone{1000};
// And once an item of it was waited for in vain: there may be many reservations of that.
constexpr std::chrono::milliseconds lock_wait_again{10};
constexpr std::size_t batch_max = 1000;
const std::string expired_reason = "expired";

// Of reservations that were locked.
std::vector<std::string> ids_in(const result& rows) {
  namespace columns = queries::quantity::lock_due_columns;
  static_assert(columns::all == queries::quantity::lock_due_one_columns::all);
  static_assert(columns::all == queries::quantity::lock_ended_columns::all);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < rows.size(); ++i) ids.push_back(rows[i][columns::id].text());
  return ids;
}

std::int64_t checked_batch(std::size_t at_most) {
  if (at_most < 1 || at_most > batch_max)
    throw error(errc::invalid_argument, "a batch of reservations has 1 to 1000 of them");
  return static_cast<std::int64_t>(at_most);
}

// What the database says of one row of the user's, and may not say of the others. Of a trigger's refusal
// PostgreSQL says no more than that a statement failed.
bool may_be_of_one(const error& e) {
  if (e.outcome_unknown()) return false;
  return e.code() == errc::constraint_violated || e.code() == errc::invalid_argument ||
         e.code() == errc::statement_failed || e.code() == errc::store_busy;
}

}  // namespace

std::vector<quantity::engine::ending> quantity::engine::read_endings(
    transaction& tx, const std::vector<std::string>& ids) const {
  std::vector<ending> all;
  if (ids.empty()) return all;
  std::vector<parameters> by_id;
  for (const auto& id : ids) by_id.push_back({options.resource, id});
  std::vector<repeated> reads;
  for (const auto& one : by_id) reads.push_back({queries::quantity::read_lines, {&one, 1}});
  const auto lines = tx.execute_all(reads);
  for (std::size_t i = 0; i < ids.size(); ++i) all.push_back({ids[i], lines_of(lines[i])});
  return all;
}

// `in` is over when it returns or throws.
std::size_t quantity::engine::release(owned_transaction in, const statement& due,
                                      std::chrono::milliseconds wait) const {
  auto tx = std::move(in);
  tx.post(queries::quantity::wait_at_most, {static_cast<std::int64_t>(wait.count())});
  const auto all = read_endings(tx, ids_in(tx.execute(due)));
  if (all.empty()) return 0;
  with_fault_points(tx.env(), "quantity.release", [&] { give_back(tx, all, "EXPIRED", expired_reason); });
  tx.commit("quantity.release.commit");
  tx.env().counters->add("settle_reservations_expired_total", {{"resource", options.resource}},
                         static_cast<std::int64_t>(all.size()));
  return all.size();
}

// One that fails must not keep the others from their turn.
void quantity::engine::postpone(database& db, const std::string& id, duration by) const {
  auto tx = db.begin();
  tx.post(queries::quantity::postpone_release, {options.resource, id, db.env().now() + by});
  tx.commit("quantity.postpone");
}

void quantity::engine::tell_not_released(const environment& env, std::span<const not_released> all) const {
  env.log->write(log_level::error, "reservation_not_released",
                 {{"resource", options.resource},
                  {"reservation", all[0].id},
                  {"reservations", std::to_string(all.size())},
                  {"error", all[0].why.what()}});
}

void quantity::engine::tell_held_up(const environment& env, std::span<const not_released> all) const {
  if (all.empty()) return;
  env.log->write(log_level::warning, "reservation_held_up",
                 {{"resource", options.resource},
                  {"reservation", all[0].id},
                  {"reservations", std::to_string(all.size())},
                  {"error", all[0].why.what()}});
}

std::size_t quantity::engine::release_one_by_one(database& db, std::size_t at_most,
                                                 const std::stop_token& cancel) const {
  const auto now = db.env().now();
  std::vector<ending> all;
  {
    auto tx = db.begin(cancel);
    const auto due =
        tx.execute(queries::quantity::lock_due, {options.resource, now, static_cast<std::int64_t>(at_most)});
    all = read_endings(tx, ids_in(due));
  }
  std::size_t released = 0;
  std::vector<not_released> failed, held_up;
  std::set<std::string> busy_items;  // perhaps: of what was held up, one was
  for (const auto& [id, lines] : all) {
    const auto is_busy = [&](const quantities::demand& one) { return busy_items.contains(one.item); };
    auto tx = db.begin(cancel);
    try {
      released += release(std::move(tx), {queries::quantity::lock_due_one, {options.resource, id, now}},
                          std::ranges::any_of(lines, is_busy) ? lock_wait_again : lock_wait_alone);
    } catch (const error& e) {
      const bool busy = e.code() == errc::store_busy && !e.outcome_unknown();
      if (!busy && (e.retryable() || e.outcome_unknown() || e.code() == errc::cancelled)) throw;
      postpone(db, id, busy ? held_up_for : postponed_for);
      (busy ? held_up : failed).push_back({id, e});
      if (busy)
        for (const auto& one : lines) busy_items.insert(one.item);
    }
  }
  tell_held_up(db.env(), held_up);
  // What not one of them gets past is no matter of theirs.
  const auto alike = [&](const not_released& one) { return one.why.code() == failed[0].why.code(); };
  if (released == 0 && held_up.empty() && !failed.empty() && std::ranges::all_of(failed, alike))
    tell_not_released(db.env(), failed);
  else
    for (const auto& one : failed) tell_not_released(db.env(), {&one, 1});
  return released;
}

std::size_t quantity::release_expired(database& db, std::size_t at_most, std::stop_token cancel) const {
  const auto batch = checked_batch(at_most);
  auto tx = db.begin(cancel);  // if that fails, no row is to blame
  try {
    return engine_->release(std::move(tx),
                            {queries::quantity::lock_due, {engine_->options.resource, db.env().now(), batch}},
                            lock_wait);
  } catch (const error& e) {
    if (!may_be_of_one(e)) throw;
    return engine_->release_one_by_one(db, at_most, cancel);
  }
}

std::size_t quantity::forget_ended(database& db, timestamp before, std::size_t at_most) const {
  const auto batch = checked_batch(at_most);
  auto tx = db.begin();
  const auto& resource = engine_->options.resource;
  const auto ids = ids_in(tx.execute(queries::quantity::lock_ended, {resource, before, batch}));
  if (ids.empty()) return 0;
  std::vector<parameters> by_id;
  for (const auto& id : ids) by_id.push_back({resource, id});
  const std::vector<repeated> both{{queries::quantity::drop_lines, by_id},
                                   {queries::quantity::drop_reservation, by_id}};
  tx.execute_all(both);
  tx.commit("quantity.forget");
  return ids.size();
}

reservation_expiry::reservation_expiry(database& db, quantity of, const reservation_expiry_options& options)
    : db_(db),
      of_(std::move(of)),
      options_(options),
      name_("reservation_expiry." + of_.options().resource),
      timer_(std::make_unique<timer>()) {
  checked_batch(options.batch);
  if (options.poll <= duration::zero() || options.keep_ended < duration::zero())
    throw error(errc::invalid_argument, "reservation_expiry_options: poll and keep_ended must be positive");
}

reservation_expiry::~reservation_expiry() = default;

const environment& reservation_expiry::env() const { return db_.env(); }

bool reservation_expiry::run_once(std::stop_token cancel) {
  if (of_.release_expired(db_, options_.batch, std::move(cancel)) > 0) return true;
  return of_.forget_ended(db_, db_.env().now() - options_.keep_ended, options_.batch) > 0;
}

}  // namespace settle::inline v0

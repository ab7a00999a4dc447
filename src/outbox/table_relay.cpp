// How order is kept on a table that knows nothing of it, with many relays and without a change to the table:
//
// Keys hash to lanes, lanes belong to shares, and a relay owns shares under leases with fences, as it does on
// Settle's own outbox. The alternative is an advisory lock per lane with FOR UPDATE SKIP LOCKED; it keeps a
// transaction open while the broker is asked, for which every vacuum of the database has to wait, and a
// broken connection gives the lock away while its old holder still publishes. A lease holds nothing open, and
// its fence is checked in the transaction that marks rows: whoever was replaced marks nothing.
//
// No position is kept. What waits is what the table says waits, read from the beginning each time: a row that
// commits late is found whatever its number, and of two transactions of one key that follow each other the
// first is never overlooked. (A position would skip it, if it committed between two reads.)
//
// One transaction per batch marks the last batch and reads the next one. It writes, so its commit is synced
// and everything that it has read is durable, also rows of writers that do not wait for the disk.
#include "settle/table_relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/if_possible.hpp"
#include "base/json.hpp"
#include "outbox/lanes.hpp"
#include "outbox/table_relay_engine.hpp"
#include "outbox/window.hpp"
#include "queries/outbox.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

using outbox::row_failure;
using outbox::table_batch;

namespace {

constexpr duration first_quiet_wait = std::chrono::milliseconds(5);

void check(const table_relay_options& options) {
  const auto refuse = [](const char* why) { throw error(errc::invalid_argument, why); };
  if (options.batch_max < 1 || options.batch_max > 10'000)
    refuse("table_relay_options.batch_max must be 1 to 10,000");
  if (options.batch_bytes_max < 1) refuse("table_relay_options.batch_bytes_max must be positive");
  if (options.attempts_max < 1) refuse("table_relay_options.attempts_max must be positive");
  if (options.lease_ttl < std::chrono::milliseconds(50))
    refuse("table_relay_options.lease_ttl must be at least 50 ms");
  if (options.idle_poll <= duration::zero() || options.retry_wait_max <= duration::zero())
    refuse("table_relay_options.idle_poll and retry_wait_max must be positive");
}

// Before anything is asked of the database.
table_mapping checked(table_mapping mapping, const database& db) {
  if (db.speaks() != dialect::postgres)
    throw error(errc::invalid_argument,
                db.name() +
                    " is not PostgreSQL, and only its tables can be adopted; on SQLite write events "
                    "with settle::publish and relay them with settle::relay");
  outbox::check_mapping(mapping);
  return mapping;
}

}  // namespace

table_mapping status_table(std::string table) {
  table_mapping m;
  m.table = std::move(table);
  m.event_id = "event_id";
  m.topic.column = "topic";
  m.type.column = "event_type";
  m.aggregate_type.column = "aggregate_type";
  m.key = "aggregate_id";
  m.payload = "payload";
  m.headers = "headers";
  m.created_at = "created_at";
  m.status = "status";
  m.published_at = "published_at";
  m.attempts = "attempts";
  m.last_error = "last_error";
  return m;
}

table_mapping debezium_table(std::string table) {
  table_mapping m;
  m.table = std::move(table);
  m.topic = {.column = "aggregatetype", .text = "outbox.event."};
  m.type.column = "type";
  m.aggregate_type.column = "aggregatetype";
  m.key = "aggregateid";
  m.payload = "payload";
  m.after_publish = after_publish::remove;
  return m;
}

table_relay::engine::engine(database& db, publisher& destination, table_mapping mapping,
                            const table_relay_options& options)
    : db_(db),
      destination_(destination),
      mapping_(checked(std::move(mapping), db)),
      options_(options),
      ownership_(db, {"table:" + mapping_.table, outbox::share_count, options.lease_ttl}),
      arrivals_(db.watch()),
      held_({.longest = options.retry_wait_max}),
      down_({.longest = options.retry_wait_max}) {
  check(options);
}

bool table_relay::engine::run_once(const std::stop_token& cancel) {
  try {
    return relay_batch(cancel);
  } catch (const error& e) {
    if (e.code() == errc::statement_failed) statements_.reset();  // the table has changed: look at it again
    if (e.code() != errc::ownership_lost) throw;
    lose_everything(e.what());
    return true;
  }
}

bool table_relay::engine::relay_batch(const std::stop_token& cancel) {
  if (!statements_) look_at_table();
  if (!done_.empty()) turn(false, cancel);  // it failed the last time; before anything is given away
  refresh_if_due(cancel);
  const auto now = env().now();
  const bool may_read = !ownership_.held().empty() && down_.may_try(now) && !held_.full(now);
  if (may_read && next_.empty() && anything_waits()) turn(true, cancel);
  if (!may_read || next_.empty()) {
    ++quiet_looks_;
    return false;
  }
  quiet_looks_ = 0;
  send(cancel);
  return true;
}

void table_relay::engine::look_at_table() {
  auto tx = db_.read();
  origin_.database =
      tx.execute(queries::outbox::read_identity)[0][queries::outbox::read_identity_columns::database_id]
          .text();
  origin_.source = options_.source.empty() ? fmt::format("settle:{}/{}", origin_.database, mapping_.table)
                                           : options_.source;
  const auto shape = outbox::read_shape(tx, mapping_, db_.name());
  outbox::check_fit(mapping_, shape);
  if (!std::exchange(advised_, true))
    for (const auto& one : outbox::judge_table(tx, mapping_, shape))
      env().log->write(log_level::warning, one.problem,
                       {{"table", mapping_.table}, {"problem", one.what}, {"statement", one.statement}});
  statements_ = outbox::statements_of(mapping_, shape);
}

void table_relay::engine::refresh_if_due(const std::stop_token& cancel) {
  if (!ownership_.due()) return;
  auto tx = db_.begin(cancel);
  const auto change = ownership_.refresh(tx);
  tx.commit("table_relay.lease");
  ownership_.applied();
  if (change.lost.empty() && change.gained.empty()) return;
  next_ = {};  // it may hold rows of others now, or lack rows of ours
  held_.drop_shares(change.lost);
  env().log->write(log_level::info, "table_relay_shares_changed",
                   {{"table", mapping_.table},
                    {"member", ownership_.member()},
                    {"gained", std::to_string(change.gained.size())},
                    {"lost", std::to_string(change.lost.size())}});
}

parameters table_relay::engine::reading(std::size_t rows_max) const {
  std::uint32_t mask = 0;
  for (const auto& [share, held] : ownership_.held()) mask |= 1U << share;
  return {mask, held_.waiting(env().now()), static_cast<std::int64_t>(rows_max)};
}

// Without a write: a quiet table costs no commit.
bool table_relay::engine::anything_waits() {
  auto tx = db_.read();
  tx.post(queries::outbox::plan_for_reading);
  return !tx.execute(statement{named("table_peek", statements_->peek), reading(1)}).empty();
}

void table_relay::engine::turn(bool read_on, const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  tx.post(queries::outbox::sync_commit);
  ownership_.confirm(tx);  // also makes this transaction write, and its commit sync
  if (!done_.published.empty()) {
    json_array ids;
    for (const auto& row : done_.published) ids.add(row.id);
    tx.post(statement{named("table_mark", statements_->mark), {ids.text(), env().now()}});
  }
  for (const auto& failure : done_.rejected) note(tx, failure);
  auto found = read_on ? read(tx) : table_batch();
  tx.commit("table_relay.turn");
  done_ = {};
  next_ = std::move(found);
}

void table_relay::engine::note(transaction& tx, const row_failure& failure) const {
  const bool given_up = is_exhausted(failure.row) && outbox::has_failed_state(mapping_);
  const auto& text = given_up ? statements_->give_up : statements_->charge;
  if (text.empty()) return;
  tx.post(statement{named(given_up ? "table_give_up" : "table_charge", text),
                    {failure.row.id, failure.reason, failure.row.attempts}});
}

table_batch table_relay::engine::read(transaction& tx) {
  tx.post(queries::outbox::plan_for_reading);
  auto found = tx.execute(statement{named("table_read", statements_->read), reading(rows_per_read())});
  auto batch = outbox::batch_of(mapping_, origin_, found, env().now());
  std::size_t bytes = 0;
  for (const auto& m : batch.messages) bytes += m.payload.size();
  if (!batch.messages.empty()) average_bytes_ = std::max(bytes / batch.messages.size(), average_bytes_ / 2);
  return batch;
}

std::size_t table_relay::engine::rows_per_read() const {
  const auto fit = options_.batch_bytes_max / std::max<std::size_t>(average_bytes_, 1);
  return std::clamp<std::size_t>(fit, 1, options_.batch_max);
}

void table_relay::engine::send(const std::stop_token& cancel) {
  const auto batch = std::exchange(next_, {});
  std::vector<publish_result> results;
  if (!batch.messages.empty())
    results = with_fault_points(env(), "table_relay.publish", [&] {
      return destination_.publish(batch.messages, {options_.publish_timeout, cancel});
    });
  outbox::check_answers(batch.messages.size(), results.size());
  done_ = outbox::judge_rows(batch, results);
  charge();
  pause_if_down();
  env().counters->add("settle_table_relay_published_total", {{"table", mapping_.table}},
                      static_cast<std::int64_t>(done_.published.size()));
  if (!done_.empty()) turn(!down_.lasts() && !held_.full(env().now()), cancel);
}

// From here on a rejected row's `attempts` counts this one too.
void table_relay::engine::charge() {
  for (const auto& row : done_.published) held_.release(row);
  for (auto& failure : done_.rejected) {
    auto& row = failure.row;
    row.attempts = held_.rejected(row, env().now());
    const bool exhausted = is_exhausted(row);
    const bool given_up = exhausted && outbox::has_failed_state(mapping_);
    if (given_up) held_.release(row);
    env().counters->add("settle_table_relay_failures_total",
                        {{"table", mapping_.table}, {"fault", "message"}});
    if (given_up) env().counters->add("settle_table_relay_failed_total", {{"table", mapping_.table}});
    env().log->write(exhausted ? log_level::error : log_level::warning,
                     given_up ? "table_relay_message_failed" : "table_relay_message_rejected",
                     {{"table", mapping_.table},
                      {"row", row.id},
                      {"key", row.key},
                      {"attempts", std::to_string(row.attempts)},
                      {"reason", failure.reason}});
  }
}

bool table_relay::engine::is_exhausted(const outbox::table_row& row) const {
  const retry::policy by{.attempts_max = options_.attempts_max};  // its pauses are those of its key
  return retry::judge_rejection(by, row.attempts).give_up.has_value();
}

void table_relay::engine::pause_if_down() {
  if (done_.down) {
    const bool tell = down_.goes_on(env().now());
    env().counters->add("settle_table_relay_failures_total",
                        {{"table", mapping_.table}, {"fault", "destination"}});
    if (tell)
      env().log->write(log_level::warning, "table_relay_paused",
                       {{"table", mapping_.table},
                        {"failures", std::to_string(down_.failures())},
                        {"reason", *done_.down}});
  } else if (down_.lasts()) {
    down_.ends(env().now());
    env().log->write(log_level::info, "table_relay_resumed", {{"table", mapping_.table}});
  }
}

void table_relay::engine::lose_everything(const char* why) {
  ownership_.drop_all();
  next_ = {};
  done_ = {};
  held_.clear();
  env().counters->add("settle_table_relay_ownership_lost_total", {{"table", mapping_.table}});
  env().log->write(log_level::warning, "table_relay_ownership_lost",
                   {{"table", mapping_.table}, {"error", why}});
}

duration table_relay::engine::idle_wait() const {
  const auto now = env().now();
  const retry::backoff looks{first_quiet_wait, options_.idle_poll};
  auto wait = std::min(looks.after(quiet_looks_), options_.lease_ttl / 3);
  if (!down_.may_try(now)) wait = std::min(options_.lease_ttl / 3, down_.until() - now);
  return std::min(wait, held_.next(now, now + wait) - now);
}

void table_relay::engine::leave() noexcept {
  try {
    if (!done_.empty() && statements_) turn(false, {});
    auto tx = db_.begin();
    ownership_.release_all(tx);
    tx.commit("table_relay.leave");
    ownership_.drop_all();
    next_ = {};
    held_.clear();
  } catch (const std::exception& e) {
    if_possible([&] {
      env().log->write(log_level::warning, "table_relay_leave_failed",
                       {{"table", mapping_.table}, {"error", e.what()}});
    });
  }
}

table_relay::table_relay(database& db, publisher& destination, table_mapping mapping,
                         const table_relay_options& options)
    : engine_(std::make_unique<engine>(db, destination, std::move(mapping), options)) {}
table_relay::~table_relay() = default;
bool table_relay::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
const environment& table_relay::env() const { return engine_->env(); }
wakeup& table_relay::arrivals() { return engine_->arrivals(); }
duration table_relay::idle_wait() const { return engine_->idle_wait(); }
void table_relay::leave() noexcept { engine_->leave(); }

}  // namespace settle::inline v0

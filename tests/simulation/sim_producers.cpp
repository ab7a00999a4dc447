#include <fmt/format.h>

#include "base/zoo.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "simulation/sim_actors.hpp"

namespace settle::sim {

producer::producer(surroundings& in, int number)
    : actor(in, fmt::format("producer-{}", number)), number_(number) {}

void producer::open() { db_ = open_database(orders_file); }

void producer::close() noexcept {
  slow_.reset();
  db_.reset();
}

void producer::choose_orders() {
  const auto count = 1 + in_.choices.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto id = fmt::format("{}-{:04}", number_, ++orders_);
    const auto padding = in_.choices.below(8) == 0 ? 6000 : in_.choices.below(300);
    trying_.push_back(
        {id, fmt::format("customer-{}", in_.choices.below(4)), id + "|" + std::string(padding, 'x')});
  }
}

void producer::write(transaction& tx, const std::vector<order>& orders) {
  for (const auto& one : orders) {
    tx.execute("insert into orders (id, customer) values ($1, $2)", {one.id, one.customer});
    const auto id = in_.env.ids->next_as<event_id>();
    note_committed(tx, {.topic = "orders", .key = one.customer, .subject = one.id, .event = id});
    publish(tx, {.topic = "orders", .type = "order.placed", .key = one.customer, .payload = one.payload},
            {.id = id});
  }
}

std::string producer::had_committed() {
  for (const auto& one : trying_) in_.customers.conflicts.insert(one.id);
  trying_.clear();
  return "had committed";
}

std::string producer::confirm(owned_transaction& tx) {
  tx.commit("producer.commit");
  for (const auto& one : trying_) in_.customers.confirmed.insert(one.id);
  const auto count = trying_.size();
  trying_.clear();
  return fmt::format("placed {}", count);
}

std::string producer::place() {
  auto tx = db_->begin();
  try {
    write(tx, trying_);
  } catch (const error& e) {
    if (e.code() == errc::constraint_violated) return had_committed();
    throw;
  }
  return confirm(tx);
}

// Nobody may ever see these.
std::string producer::roll_back() {
  auto tx = db_->begin();
  const auto id = fmt::format("{}-never-{:04}", number_, ++orders_);
  write(tx, {{id, "customer-0", id + "|"}});
  return "rolled back";
}

// Holds the write lock over the following steps of everyone else.
std::string producer::begin_slowly() {
  slow_.emplace(db_->begin());
  try {
    write(*slow_, trying_);
  } catch (const error& e) {
    slow_.reset();
    if (e.code() == errc::constraint_violated) return had_committed();
    throw;
  }
  return "began";
}

std::string producer::work() {
  if (slow_) {
    auto tx = std::move(*slow_);
    slow_.reset();
    return confirm(tx);
  }
  if (next == mode::finish && !owes()) {
    did_something_ = false;
    return "nothing owed";
  }
  if (next == mode::roll_back) return roll_back();
  if (!owes()) choose_orders();
  return next == mode::begin_slowly ? begin_slowly() : place();
}

joined_producer::~joined_producer() { sqlite3_close_v2(own_); }

void joined_producer::run(const char* sql) {
  if (sqlite3_exec(own_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw error(errc::store_unavailable, fmt::format("{}: {}", sql, sqlite3_errmsg(own_)));
}

void joined_producer::open() {
  constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(orders_file, &own_, flags, vfs().c_str()) != SQLITE_OK)
    throw error(errc::store_unavailable, "cannot open the service's own connection");
  sqlite3_busy_timeout(own_, 20);
  sqlite3_db_config(own_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  run("pragma synchronous = normal");  // the least that may be joined: commits are synced some day
}

void joined_producer::close() noexcept {
  sqlite3_close_v2(own_);
  own_ = nullptr;
}

std::string joined_producer::place() {
  run("begin immediate");
  try {
    {
      sqlite::joined_transaction tx(own_, in_.env);
      write(tx, trying_);
    }
    run("commit");
  } catch (const error& e) {
    if (sqlite3_get_autocommit(own_) == 0) sqlite3_exec(own_, "rollback", nullptr, nullptr, nullptr);
    if (e.code() == errc::constraint_violated) {
      trying_.clear();  // visible, and no more promised than that
      return "had committed";
    }
    throw;
  }
  const auto count = trying_.size();
  trying_.clear();
  return fmt::format("placed {}, not synced", count);
}

}  // namespace settle::sim

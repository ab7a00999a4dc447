// Locks as rows of the service's database.
#include <algorithm>
#include <optional>

#include "lock/store.hpp"
#include "queries/lock.hpp"
#include "settle/error.hpp"
#include "sql/handler_scope.hpp"

namespace settle::locking {
namespace {

// How often a lock may change hands between a try and a look.
constexpr int tries_max = 5;

lock_holder holder_of(const value& owner_text, const value& epoch, const value& until) {
  const auto owner = uuid::parse(owner_text.text());
  if (!owner) throw error(errc::store_corrupt, "the owner of a lock is no uuid: its row was written by hand");
  return {{*owner, epoch.integer()}, until.time()};
}

lock_holder holder_of(const result::row& row) {
  namespace columns = queries::lock::read_holder_columns;
  return holder_of(row[columns::owner], row[columns::epoch], row[columns::held_until]);
}

class sql_store final : public store {
 public:
  sql_store(database& db, duration takeover_wait)
      : db_(db),
        // None at all would mean for ever.
        wait_(std::max(std::chrono::ceil<std::chrono::milliseconds>(takeover_wait),
                       std::chrono::milliseconds(1))) {}

  const environment& env() const override { return db_.env(); }

  answer acquire(const std::string& name, const uuid& owner, duration ttl) override {
    const sql::beside_handler own;
    for (int tries = 0; tries < tries_max; ++tries) {
      const auto rows = upsert(name, owner, ttl);
      if (rows && !rows->empty()) {
        namespace columns = queries::lock::acquire_columns;
        const auto row = (*rows)[0];
        return {row[columns::acquired].integer() != 0,
                holder_of(row[columns::owner], row[columns::epoch], row[columns::held_until])};
      }
      // Also a lock that has expired is held while its owner is in the middle of a fenced transaction.
      const auto since = rows ? now() : value(-1);
      const auto held = db_.read().commit_with({queries::lock::read_holder, {name, since}}, "");
      if (held.empty()) continue;
      auto holder = holder_of(held[0]);
      // Nobody knows for how much longer; one that was released in the middle has no time at all.
      if (!rows) holder.until = std::max(holder.until, env().now() + wait_);
      return {false, holder};
    }
    throw error(errc::store_busy, "the lock " + name + " changes hands faster than it can be asked for");
  }

  std::vector<bool> renew(std::span<const holding> all) override {
    std::vector<parameters> rows;
    for (const auto& one : all)
      rows.push_back({one.name, one.token.owner, one.token.epoch, one.ttl.count(), now()});
    const sql::beside_handler own;
    auto tx = db_.begin();
    const auto changed = tx.execute_many(queries::lock::renew, rows);
    tx.commit("lock.renew");
    std::vector<bool> ours;
    for (const auto rows_changed : changed) ours.push_back(rows_changed != 0);
    return ours;
  }

  bool release(const holding& what) override {
    const sql::beside_handler own;
    const statement by_owner{queries::lock::release, {what.name, what.token.owner, what.token.epoch}};
    return resolving([&] { return db_.begin().commit_with(by_owner, "lock.release"); }).affected() != 0;
  }

 private:
  // Nothing at all if the row was waited for in vain; no row if somebody else was faster.
  std::optional<result> upsert(const std::string& name, const uuid& owner, duration ttl) {
    const statement with{queries::lock::acquire, {name, owner, ttl.count(), now(), wait_.count()}};
    try {
      return resolving([&] { return db_.begin().commit_with(with, "lock.acquire"); });
    } catch (const error& e) {
      if (db_.speaks() == dialect::sqlite) throw;
      // Of those who insert a new name at once, PostgreSQL refuses all but one by the second of its keys.
      if (e.code() == errc::constraint_violated) return result();
      if (e.code() != errc::store_busy) throw;
      return std::nullopt;
    }
  }

  // Null where the server's clock decides.
  value now() const { return db_.speaks() == dialect::sqlite ? value(env().now()) : value(); }

  database& db_;
  std::chrono::milliseconds wait_;
};

}  // namespace

std::unique_ptr<store> make_sql_store(database& db, const lock_service_options& options) {
  return std::make_unique<sql_store>(db, options.takeover_wait);
}

}  // namespace settle::locking

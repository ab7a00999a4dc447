// What operators see of the locks in a database, and do about them.
#include "base/check.hpp"
#include "base/doubt.hpp"
#include "queries/lock.hpp"
#include "settle/lock.hpp"

namespace settle::inline v0 {
namespace {

constexpr int commits_max = 3;  // each but the last with an unknown outcome

// Null where the server's clock decides.
value clock_of(const database& db) {
  return db.speaks() == dialect::sqlite ? value(db.env().now()) : value();
}

// Of list_locks and of find_lock.
lock_record read_record(const result::row& row) {
  namespace columns = queries::lock::list_locks_columns;
  static_assert(columns::all == queries::lock::find_lock_columns::all);
  const auto owner = uuid::parse(row[columns::owner].text());
  SETTLE_CHECK(owner.has_value(), "owners are uuids");
  lock_record one{.name = row[columns::name].text(), .token = {*owner, row[columns::epoch].integer()}};
  if (row[columns::held_until].integer() == 0) return one;
  one.until = row[columns::held_until].time();
  one.expired = row[columns::expired].integer() != 0;
  return one;
}

}  // namespace

std::vector<lock_record> list_locks(database& db, bool released, std::size_t at_most,
                                    std::string_view after) {
  const auto rows = db.read().commit_with(
      {queries::lock::list_locks, {after, released, static_cast<std::int64_t>(at_most), clock_of(db)}}, "");
  std::vector<lock_record> all;
  for (std::size_t n = 0; n < rows.size(); ++n) all.push_back(read_record(rows[n]));
  return all;
}

std::optional<lock_record> find_lock(database& db, std::string_view name) {
  const auto rows = db.read().commit_with({queries::lock::find_lock, {name, clock_of(db)}}, "");
  if (rows.empty()) return std::nullopt;
  return read_record(rows[0]);
}

// A repetition finds what it has done by its own name in the row. If the lock has changed hands more than
// once meanwhile, the owner that was seen has lost it in any case.
bool take_lock_away(database& db, std::string_view name, const fence_token& seen) {
  const auto nobody = db.env().ids->next();
  return until_known(commits_max, [&](bool again) {
    const statement taking{queries::lock::take_away, {name, seen.owner, seen.epoch, nobody}};
    if (db.begin().commit_with(taking, "lock.take_away").affected() != 0) return true;
    if (!again) return false;
    const auto now = find_lock(db, name);
    return now && (now->token.owner == nobody || now->token.epoch > seen.epoch + 1);
  });
}

}  // namespace settle::inline v0

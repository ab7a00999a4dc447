// What a SQL driver has to do before Settle may stand on it. A driver is done when
//
//   INSTANTIATE_TEST_SUITE_P(mine, sql_conformance, ::testing::Values(my_driver()), driver_name);
//
// passes. Where databases differ by nature, the driver answers a question instead of skipping a test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "settle/database.hpp"
#include "support/expect_error.hpp"

namespace settle::test {

struct open_settings {
  environment env = {};
  duration busy_timeout = std::chrono::seconds(30);
  int connections_max = 16;
};

// One empty database for one test. Opening it again gives another `database` on the same data, as
// another process would have it.
class sql_storage {
 public:
  virtual ~sql_storage() = default;
  virtual std::unique_ptr<database> open(const open_settings& with) = 0;
};

struct sql_driver {
  std::string name;
  std::function<std::unique_ptr<sql_storage>()> fresh;
  std::string bytes_type;               // the column type for bytes
  bool text_holds_nul = true;           // else text with a NUL inside is refused with invalid_argument
  bool continues_after_failure = true;  // else a failed statement ends the transaction: transaction_lost
  bool wakes_others = true;             // watch() wakes also for commits of other database objects
  std::string outbox_view = "settle_outbox_events";
  std::string migrations_table = "settle_migrations";
  std::function<std::string()> missing = {};  // why the database cannot be had here, or empty
};

inline std::string driver_name(const ::testing::TestParamInfo<sql_driver>& of) { return of.param.name; }
inline void PrintTo(const sql_driver& driver, std::ostream* out) { *out << driver.name; }

class sql_conformance : public ::testing::TestWithParam<sql_driver> {
 protected:
  void SetUp() override {
    const auto why = GetParam().missing ? GetParam().missing() : std::string();
    if (!why.empty()) GTEST_SKIP() << why;
    storage_ = GetParam().fresh();
  }

  std::unique_ptr<database> open(const open_settings& with = {}) { return storage_->open(with); }

  // A database with one table `notes (id bigint primary key, note text not null)`.
  std::unique_ptr<database> open_with_notes(const open_settings& with = {}) {
    auto db = open(with);
    auto tx = db->begin();
    tx.execute("create table notes (id bigint primary key, note text not null)");
    tx.wake_on_commit();
    tx.commit();
    return db;
  }

  static void add_note(database& db, std::int64_t id, const std::string& text = "x") {
    auto tx = db.begin();
    tx.execute("insert into notes (id, note) values ($1, $2)", {id, text});
    tx.wake_on_commit();
    tx.commit();
  }

  static std::int64_t count_notes(database& db) {
    return db.read().execute("select count(*) from notes")[0][0].integer();
  }

 private:
  std::unique_ptr<sql_storage> storage_;
};

}  // namespace settle::test

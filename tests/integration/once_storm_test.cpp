// Fifty callers of one key, each with a connection of its own, while something fails or the process dies.
// Effects go into a table without any constraint: a second one would be seen.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>

#include "settle/error.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/shared_faults.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

constexpr int callers = 50;
constexpr request_identity paid{"shop", "ann", "paid"}, refused{"shop", "ann", "refused"};

struct stormed_requests : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    const auto db = open();
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table deeds (what text not null)");
    tx.commit();
  }

  static bool on_postgres() { return GetParam() == dialect::postgres; }

  std::unique_ptr<database> open(fault_points* faults = nullptr) {
    const environment env{.log = &log, .faults = faults};
    if (on_postgres()) return postgres::open(own->conninfo(), {.env = env, .connections_max = 1});
    return sqlite::open(dir.file("service.db"), {.env = env});
  }

  void clear() {
    const auto db = open();
    auto tx = db->begin();
    tx.execute("delete from deeds");
    tx.execute(on_postgres() ? "delete from settle.idempotency_keys" : "delete from settle_idempotency_keys");
    tx.commit();
  }

  // As clients do: until there is an answer. The server may need a moment to see that a process has died.
  static once_result ask(database& on, const request_identity& who, keeps how) {
    for (;;) {
      try {
        auto result = once(on, who, [&](transaction& tx) {
          tx.execute("insert into deeds (what) values ($1)", {std::string(who.key)});
          return answer{.body = "thanks", .keep = how};
        });
        if (result.outcome != once_outcome::in_flight) return result;
      } catch (const error& e) {
        if (!e.retryable()) throw;
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  // How many were told that it was they who had it done.
  int storm(fault_points* faults = nullptr) {
    std::vector<std::unique_ptr<database>> all;
    for (int n = 0; n < callers; ++n) all.push_back(open(faults));
    std::atomic<int> executed = 0;
    std::latch start(callers);
    std::vector<std::jthread> threads;
    for (const auto& one : all)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        try {
          const auto result = ask(*one, paid, keeps::everything);
          executed += result.outcome == once_outcome::executed ? 1 : 0;
          EXPECT_EQ(result.what.body, "thanks");
          ask(*one, refused, keeps::answer);
        } catch (const error& e) {
          ADD_FAILURE() << e.what();
        }
      });
    threads.clear();
    return executed;
  }

  std::int64_t deeds(const std::string& what) {
    return open()->read().execute("select count(*) from deeds where what = $1", {what})[0][0].integer();
  }

  std::optional<test::scratch_database> own;
  test::temp_dir dir;
  test::quiet_log log;
};

// Proves I4, I5, V3
TEST_P(stormed_requests, have_one_effect_whatever_fails_or_dies_at_any_fault_point) {
  int executed = 0;
  const auto explored = testing::explore({
      .prepare =
          [&] {
            clear();
            executed = 0;
          },
      .run =
          [&](fault_points& faults) {
            test::shared_faults shared(faults);
            executed = storm(&shared);
          },
      .recover = [&] { executed += storm(); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(deeds("paid"), 1) << where;
            EXPECT_EQ(deeds("refused"), 0) << where;
            EXPECT_LE(executed, 1) << where;
            EXPECT_EQ(ask(*open(), paid, keeps::everything).outcome, once_outcome::replayed) << where;
            EXPECT_EQ(ask(*open(), refused, keeps::answer).outcome, once_outcome::replayed) << where;
          },
  });
  EXPECT_GE(explored.points.size(), 4u) << "before and after the commits of both keys";
}

INSTANTIATE_TEST_SUITE_P(databases, stormed_requests, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& one) {
                           return one.param == dialect::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace settle

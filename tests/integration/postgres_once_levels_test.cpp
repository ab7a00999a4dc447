// Idempotent requests in transactions that see a snapshot: REPEATABLE READ and SERIALIZABLE, as the caller
// began them or as its role has them by default.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>

#include "settle/error.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/service_connection.hpp"

namespace settle {
namespace {

constexpr request_identity click{"shop", "ann", "k-1"};

struct snapshot_requests : ::testing::TestWithParam<const char*> {
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    db = postgres::open(own->conninfo());
    migrate(*db);
    own->run("create table deeds (what text not null)");
    own->run("create table numbers (n bigint not null)");
  }

  static answer work(transaction& tx) {
    tx.execute("insert into deeds (what) values ('done')");
    return {.body = "thanks"};
  }

  // A transaction of the caller's, at the level, that has seen the database.
  owned_transaction begin() {
    auto tx = db->begin();
    tx.execute("set transaction isolation level " + std::string(GetParam()));
    tx.execute("select count(*) from deeds");
    return tx;
  }

  // A session whose role would have all its transactions at the level.
  std::string by_default() const {
    std::string level = GetParam();
    if (const auto space = level.find(' '); space != std::string::npos) level.replace(space, 1, "\\\\ ");
    return test::with(own->conninfo(), "options='-c default_transaction_isolation=" + level + "'");
  }

  std::int64_t deeds() { return db->read().execute("select count(*) from deeds")[0][0].integer(); }

  std::optional<test::scratch_database> own;
  std::unique_ptr<database> db;
};

// Proves I4, I5
TEST_P(snapshot_requests, that_do_not_see_the_record_are_undone_and_replayed_when_they_come_again) {
  {
    auto tx = begin();
    EXPECT_EQ(once(*db, click, work).outcome, once_outcome::executed) << "somebody else is faster";
    EXPECT_EQ(test::code_of([&] { once(tx, click, work); }), errc::store_busy) << "which is retryable";
  }
  auto tx = begin();
  const auto again = once(tx, click, work);
  EXPECT_EQ(again.outcome, once_outcome::replayed);
  EXPECT_EQ(again.what.body, "thanks");
  tx.commit();
  EXPECT_EQ(deeds(), 1);
}

// Whoever ignores that and commits has still not acted twice. Proves I4, I5
TEST_P(snapshot_requests, that_do_not_see_the_record_have_no_effect_if_their_transaction_commits) {
  auto tx = begin();
  tx.execute("insert into deeds (what) values ('own')");
  once(*db, click, work);
  EXPECT_EQ(test::code_of([&] { once(tx, click, work); }), errc::store_busy);
  test::code_of([&] { tx.commit(); });  // SERIALIZABLE may refuse it
  EXPECT_EQ(db->read().execute("select count(*) from deeds where what = 'done'")[0][0].integer(), 1);
}

// Proves I4, I5
TEST_P(snapshot_requests, nested_in_another_are_replayed_when_the_whole_comes_again) {
  const auto order = [&](transaction& tx) {
    return once(tx, {"shop", "ann", "outer"}, [&](transaction& outer) {
      outer.execute("insert into numbers (n) values (1)");
      return once(outer, click, work).what;
    });
  };
  {
    auto tx = begin();
    once(*db, click, work);
    EXPECT_EQ(test::code_of([&] { order(tx); }), errc::store_busy);
  }
  auto tx = begin();
  const auto again = order(tx);
  EXPECT_EQ(again.outcome, once_outcome::executed);
  EXPECT_EQ(again.what.body, "thanks") << "of the inner one, from its record";
  tx.commit();
  EXPECT_EQ(deeds(), 1);
  EXPECT_EQ(own->run("select count(*) from numbers"), "1");
}

// An error of the work is no rival's record: it would fail again. Proves I5
TEST_P(snapshot_requests, whose_work_breaks_a_rule_of_the_schema_are_told_so) {
  own->run("create unique index on numbers (n)");
  constexpr query add{"test.add_number", "", "insert into numbers (n) values (1)"};
  auto tx = begin();
  const auto twice = [&](transaction& in) {
    for (int i = 0; i < 2; ++i) in.post(add);  // found out with the record
    return answer{};
  };
  EXPECT_EQ(test::code_of([&] { once(tx, click, twice); }), errc::constraint_violated);
  EXPECT_EQ(once(tx, click, work).outcome, once_outcome::executed);
  tx.commit();
  EXPECT_EQ(deeds(), 1);
}

// Proves I4, I5
TEST_P(snapshot_requests, joined_by_role_default_never_run_twice) {
  const auto service = test::service_connection::to_postgres(by_default());
  service.begin();
  service.run("select count(*) from deeds");
  EXPECT_EQ(once(*db, click, work).outcome, once_outcome::executed);
  EXPECT_EQ(test::code_of([&] { once(*service.join(), click, work); }), errc::store_busy);
  service.run("rollback");
  service.begin();
  const auto again = once(*service.join(), click, work);
  EXPECT_EQ(again.outcome, once_outcome::replayed);
  service.run("commit");
  EXPECT_EQ(deeds(), 1);
}

// Proves I4, I5
TEST_P(snapshot_requests, of_a_role_with_this_default_run_once_without_anybodys_help) {
  const auto roles = postgres::open(by_default());
  {
    const auto found = roles->read().execute("select current_setting('default_transaction_isolation')");
    ASSERT_EQ(found[0][0].text(), GetParam());
  }
  std::atomic<int> executed = 0;
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 20; ++n)
      threads.emplace_back([&, n] {
        const auto result = once(n % 2 == 0 ? *roles : *db, click, work);
        executed += result.outcome == once_outcome::executed ? 1 : 0;
      });
  }
  EXPECT_EQ(executed, 1);
  EXPECT_EQ(deeds(), 1);
}

// Proves I4, I5
TEST_P(snapshot_requests, of_callers_that_meet_have_one_effect_each) {
  constexpr int callers = 6, keys = 15;
  std::atomic<int> executed = 0;
  for (int k = 0; k < keys; ++k) {
    const auto key = "key " + std::to_string(k);
    std::latch start(callers);
    std::vector<std::jthread> threads;
    for (int n = 0; n < callers; ++n)
      threads.emplace_back([&] {
        bool first = true;
        for (int tries = 0;; ++tries) {
          ASSERT_LT(tries, 1000);
          try {
            auto tx = begin();
            if (std::exchange(first, false)) start.arrive_and_wait();
            const auto result = once(tx, {"shop", "ann", key}, work);
            if (result.outcome == once_outcome::in_flight) continue;
            tx.commit();
            executed += result.outcome == once_outcome::executed ? 1 : 0;
            return;
          } catch (const error& e) {
            ASSERT_TRUE(e.retryable()) << e.what();
          }
        }
      });
  }
  EXPECT_EQ(executed, keys);
  EXPECT_EQ(deeds(), keys);
}

INSTANTIATE_TEST_SUITE_P(levels, snapshot_requests, ::testing::Values("repeatable read", "serializable"),
                         [](const auto& one) {
                           return std::string(one.param) == "serializable" ? "serializable"
                                                                           : "repeatable_read";
                         });

}  // namespace
}  // namespace settle

// Idempotent requests, on both databases.
#include "settle/once.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

// Effects go into a table without any constraint: a second one would be seen.
struct requests : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = open();
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table deeds (what text not null)");
    tx.commit();
  }

  std::unique_ptr<database> open(fault_points* faults = nullptr) {
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    if (GetParam() == dialect::postgres) return postgres::open(own->conninfo(), {.env = env});
    return sqlite::open(dir.file("service.db"), {.env = env});
  }

  static void add(transaction& tx, const std::string& what) {
    tx.execute("insert into deeds (what) values ($1)", {what});
  }

  once_result order(database& on, const request_identity& who, const once_options& options = {}) {
    return once(
        on, who,
        [&](transaction& tx) {
          ++runs;
          add(tx, std::string(who.key));
          return answer{
              .status = 201, .headers = {{"Location", "/orders/7"}}, .body = std::string("{\"id\":7}\0", 9)};
        },
        options);
  }

  std::int64_t effects() { return db->read().execute("select count(*) from deeds")[0][0].integer(); }

  std::optional<test::scratch_database> own;
  test::temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  std::atomic<int> runs = 0;
};

constexpr request_identity click{"shop", "ann", "k-1"};

// Proves I1, I5
TEST_P(requests, one_that_comes_again_is_answered_from_its_record) {
  const auto first = order(*db, click);
  EXPECT_EQ(first.outcome, once_outcome::executed);
  const auto second = order(*db, click);
  EXPECT_EQ(second.outcome, once_outcome::replayed);
  EXPECT_EQ(second.what, first.what);
  EXPECT_EQ(second.what.body.size(), 9u) << "bytes, not text";
  EXPECT_EQ(order(*open(), click).outcome, once_outcome::replayed);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(effects(), 1);
  EXPECT_EQ(counters.value("settle_once_total", {{"service", "shop"}, {"outcome", "replayed"}}), 2);
}

// Proves I3
TEST_P(requests, of_two_callers_never_share_a_key) {
  const std::vector<request_identity> all = {
      {"shop", "ann", "k"},   {"shop", "bob", "k"},  {"bank", "ann", "k"},
      {"shop", "a", "nnk"},   {"shop", "annk", "k"}, {"shop", "ann:k", "k"},
      {"shop", "ann", ":kk"}, {"shopann", "k", "k"}, {"shop", "", "k"}};
  for (const auto& who : all) EXPECT_EQ(order(*db, who).outcome, once_outcome::executed) << who.caller;
  EXPECT_EQ(effects(), static_cast<std::int64_t>(all.size()));
}

// Proves I6
TEST_P(requests, a_key_that_was_used_for_something_else_is_a_mismatch) {
  order(*db, click, {.fingerprint = "POST /orders 1"});
  EXPECT_EQ(order(*db, click, {.fingerprint = "POST /orders 2"}).outcome, once_outcome::mismatch);
  EXPECT_EQ(order(*db, click, {.fingerprint = "POST /orders 1"}).outcome, once_outcome::replayed);
  EXPECT_EQ(order(*db, click).outcome, once_outcome::replayed) << "nothing to compare";
  EXPECT_EQ(effects(), 1);
}

std::string header_of(const answer& of, std::string_view name) {
  for (const auto& [known, content] : of.headers)
    if (known == name) return content;
  return {};
}

// Whoever sends what he is given must never send a success for a request that did not run. Proves I1, I6
TEST_P(requests, that_are_refused_have_an_answer_that_says_so) {
  const auto ask = [&](auto& on, std::string_view fingerprint) {
    return once(on, click, [&](transaction& tx) { return add(tx, "x"), answer{.status = 201}; },
                {.fingerprint = fingerprint});
  };
  std::optional<once_result> second, other;
  const auto first = once(*db, click,
                          [&](transaction&) {
                            second = ask(*db, "a");
                            other = ask(*db, "b");
                            return answer{.status = 201};
                          },
                          {.fingerprint = "a"});
  EXPECT_EQ(first.what.status, 201);
  ASSERT_EQ(second->outcome, once_outcome::in_flight);
  EXPECT_EQ(second->what.status, 409);
  EXPECT_EQ(header_of(second->what, "Retry-After"), "1");
  EXPECT_EQ(header_of(second->what, "Content-Type"), "application/problem+json");
  EXPECT_NE(second->what.body.find("idempotency_in_flight"), std::string::npos) << second->what.body;
  const auto later = ask(*db, "b");
  auto tx = db->begin();
  const auto joined = ask(tx, "b");
  for (const auto* refused : {&std::as_const(*other), &later, &joined}) {
    ASSERT_EQ(refused->outcome, once_outcome::mismatch);
    EXPECT_EQ(refused->what.status, 422);
    EXPECT_NE(refused->what.body.find("idempotency_key_reused"), std::string::npos) << refused->what.body;
    EXPECT_EQ(refused->what.keep, keeps::nothing) << "a work that passes it on leaves its own key free";
  }
}

TEST_P(requests, without_any_work_are_refused) {
  EXPECT_EQ(test::code_of([&] { once(*db, click, once_work()); }), errc::invalid_argument);
}

// Proves I1, I5, I6
TEST_P(requests, fifty_clicks_hold_one_connection_and_one_runs) {
  std::latch inside(1), others_done(49);
  std::thread first([&] {
    const auto result = once(*db, click,
                             [&](transaction& tx) {
                               add(tx, "once");
                               inside.count_down();
                               others_done.wait();
                               return answer{};
                             },
                             {.fingerprint = "a"});
    EXPECT_EQ(result.outcome, once_outcome::executed);
  });
  inside.wait();
  // With a connection each they would wait here for the writer (SQLite) or for the pool.
  std::vector<std::thread> others;
  for (int i = 0; i < 49; ++i)
    others.emplace_back([&, i] {
      const auto result = order(*db, click, {.fingerprint = i == 0 ? "b" : "a"});
      EXPECT_EQ(result.outcome, i == 0 ? once_outcome::mismatch : once_outcome::in_flight);
      others_done.count_down();
    });
  for (auto& one : others) one.join();
  first.join();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(effects(), 1);
}

// Proves I4, I5
TEST_P(requests, of_one_key_from_many_processes_have_one_effect) {
  constexpr int processes = 5, clients = 10, keys = 20;
  std::vector<std::unique_ptr<database>> all;  // each with a pool of its own, as a process has
  for (int i = 0; i < processes; ++i) all.push_back(open());
  for (int k = 0; k < keys; ++k) {
    const auto key = "key " + std::to_string(k);
    std::latch start(1);
    std::atomic<int> executed = 0, failed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < processes * clients; ++i)
      threads.emplace_back([&, i] {
        start.wait();
        try {
          if (order(*all[i % processes], {"shop", "ann", key}).outcome == once_outcome::executed) ++executed;
        } catch (const error& e) {
          ++failed;
          ADD_FAILURE() << e.what();
        }
      });
    start.count_down();
    for (auto& one : threads) one.join();
    EXPECT_EQ(executed, 1);
  }
  EXPECT_EQ(effects(), keys);
}

// Proves I5
TEST_P(requests, a_run_that_fails_leaves_nothing_and_its_key_is_free) {
  EXPECT_THROW(once(*db, click,
                    [&](transaction& tx) -> answer {
                      add(tx, "half");
                      throw std::runtime_error("the work has failed");
                    }),
               std::runtime_error);
  EXPECT_EQ(effects(), 0);
  EXPECT_EQ(order(*db, click).outcome, once_outcome::executed);
}

// Proves I5
TEST_P(requests, a_refusal_is_recorded_or_not_as_the_work_says) {
  const auto refuse = [&](keeps how) {
    return once(*db, click, [&](transaction& tx) {
      ++runs;
      add(tx, "undone");
      return answer{.status = 409, .body = "out of stock", .keep = how};
    });
  };
  EXPECT_EQ(refuse(keeps::nothing).outcome, once_outcome::executed);
  EXPECT_EQ(refuse(keeps::answer).outcome, once_outcome::executed);
  const auto again = refuse(keeps::everything);
  EXPECT_EQ(again.outcome, once_outcome::replayed);
  EXPECT_EQ(again.what.status, 409);
  EXPECT_EQ(again.what.body, "out of stock");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(effects(), 0);
}

// Proves I5
TEST_P(requests, in_the_callers_own_transaction_are_decided_by_its_commit) {
  const auto work = [&](transaction& tx) {
    add(tx, "inner");
    return answer{.body = "done"};
  };
  {
    auto tx = db->begin();
    EXPECT_EQ(once(tx, click, work).outcome, once_outcome::executed);
    EXPECT_EQ(once(tx, click, work).outcome, once_outcome::replayed) << "its own record is there";
  }
  EXPECT_EQ(effects(), 0);
  auto tx = db->begin();
  add(tx, "outer");
  EXPECT_THROW(once(tx, click,
                    [&](transaction& inner) -> answer {
                      add(inner, "half");
                      throw std::runtime_error("no");
                    }),
               std::runtime_error);
  EXPECT_EQ(once(tx, click, work).outcome, once_outcome::executed);
  tx.commit();
  EXPECT_EQ(effects(), 2);
  EXPECT_EQ(order(*db, click).outcome, once_outcome::replayed);
}

// What is thrown is what went wrong, not that there is nothing to go back to any more. Proves I5
TEST_P(requests, in_a_transaction_that_is_lost_tell_what_has_happened) {
  const bool postgres = GetParam() == dialect::postgres;
  auto tx = db->begin();
  const auto lose = [&] {
    once(tx, click, [&](transaction& inner) {
      if (postgres) inner.execute("select pg_terminate_backend(pg_backend_pid())");
      inner.execute("create table single (what text unique on conflict rollback)");
      for (int i = 0; i < 2; ++i) inner.execute("insert into single (what) values ('x')");
      return answer{};
    });
  };
  EXPECT_EQ(test::code_of(lose), postgres ? errc::store_unavailable : errc::constraint_violated);
}

// Whatever comes between the look and the record: the second record takes its transaction down with it.
// Proves I4
TEST_P(requests, nested_in_itself_has_no_second_effect) {
  const auto twice = [&] {
    once(*db, click, [&](transaction& outer) {
      add(outer, "outer");
      const auto inner = once(outer, click, [&](transaction& tx) {
        add(tx, "inner");
        return answer{};
      });
      return inner.what;
    });
  };
  EXPECT_EQ(test::code_of(twice), errc::constraint_violated);
  EXPECT_EQ(effects(), 0);
}

// Proves I2
TEST_P(requests, a_record_that_was_tampered_with_is_not_replayed) {
  order(*db, click);
  auto tx = db->begin();
  tx.execute(GetParam() == dialect::postgres ? "update settle.idempotency_keys set status = 200"
                                             : "update settle_idempotency_keys set status = 200");
  tx.commit();
  EXPECT_EQ(test::code_of([&] { order(*db, click); }), errc::store_corrupt);
  EXPECT_EQ(effects(), 1);
}

// Proves I1, I7
TEST_P(requests, are_remembered_for_their_time_and_then_forgotten_in_slices) {
  for (int i = 0; i < 5; ++i) order(*db, {"shop", "ann", "old " + std::to_string(i)});
  time.advance(1h);
  order(*db, click);
  time.advance(23h - 1s);
  EXPECT_EQ(forget_expired_keys(*db), 0);
  time.advance(1s);
  EXPECT_EQ(order(*db, {"shop", "ann", "old 0"}).outcome, once_outcome::replayed) << "as long as it is there";
  EXPECT_EQ(forget_expired_keys(*db, 3), 3);
  EXPECT_EQ(forget_expired_keys(*db, 3), 2);
  EXPECT_EQ(order(*db, click).outcome, once_outcome::replayed);
  EXPECT_EQ(order(*db, {"shop", "ann", "old 0"}).outcome, once_outcome::executed) << "as good as new";
}

TEST_P(requests, bad_input_is_refused_before_anything_runs) {
  EXPECT_EQ(test::code_of([&] { order(*db, {"shop", "ann", ""}); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { order(*db, {"shop", "ann", std::string(256, 'k')}); }),
            errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { order(*db, {"", "ann", "k"}); }), errc::invalid_name);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(test::code_of([&] { order(*db, click, {.answer_bytes_max = 10}); }), errc::payload_too_large);
  const auto no_text = [](transaction&) { return answer{.headers = {{"x", "\xff"}}}; };
  EXPECT_EQ(test::code_of([&] { once(*db, click, no_text); }), errc::invalid_argument);
  EXPECT_EQ(effects(), 0);
  EXPECT_EQ(order(*db, click).outcome, once_outcome::executed);
}

// The answer to the first commit of a request is lost; then something happens.
struct lost_commit final : fault_points {
  explicit lost_commit(std::function<void()> then) : then_(std::move(then)) {}
  void reached(std::string_view point) override {
    if (point != "once.commit.after" || std::exchange(lost_, true)) return;
    then_();
    throw error::with_unknown_outcome(errc::store_unavailable, "no answer");
  }

 private:
  std::function<void()> then_;
  bool lost_ = false;
};

// Proves I4: a failure while an outcome is looked for does not make it known.
TEST_P(requests, whose_commit_was_lost_are_in_doubt_until_their_record_can_be_read) {
  const std::string table =
      GetParam() == dialect::postgres ? "settle.idempotency_keys" : "settle_idempotency_keys";
  const auto change = [&](const std::string& sql) {
    auto tx = db->begin();
    tx.execute(sql);
    tx.commit();
  };
  lost_commit faults([&] { change("alter table " + table + " rename to away"); });
  EXPECT_TRUE(test::leaves_in_doubt([&] { order(*open(&faults), click); }));
  EXPECT_EQ(effects(), 1);
  if (GetParam() == dialect::postgres)
    change("alter table settle.away rename to idempotency_keys");
  else
    change("alter table away rename to settle_idempotency_keys");
  EXPECT_EQ(order(*db, click).outcome, once_outcome::replayed);
}

// Proves I4
TEST_P(requests, whose_commit_was_lost_are_resolved_though_their_caller_wants_to_stop) {
  std::stop_source stop;
  lost_commit faults([&] { stop.request_stop(); });
  const auto work = [](transaction& tx) {
    add(tx, "k-1");
    return answer{.body = "thanks"};
  };
  EXPECT_EQ(once(*open(&faults), click, work, {}, stop.get_token()).outcome, once_outcome::executed);
  EXPECT_EQ(effects(), 1);
}

// The client repeats its request until it has an answer, as clients do. Proves I4, I5, V3
TEST_P(requests, survive_a_failure_and_a_kill_at_every_fault_point) {
  const auto ask = [&](database& on) {
    once(on, click, [&](transaction& tx) {
      add(tx, "paid");
      return answer{.body = "thanks"};
    });
    once(on, {"shop", "ann", "k-2"}, [&](transaction& tx) {
      add(tx, "undone");
      return answer{.status = 409, .keep = keeps::answer};
    });
  };
  testing::scenario what;
  what.prepare = [&] {
    auto tx = db->begin();
    tx.execute("delete from deeds");
    tx.execute(GetParam() == dialect::postgres ? "delete from settle.idempotency_keys"
                                               : "delete from settle_idempotency_keys");
    tx.commit();
    db.reset();
  };
  what.run = [&](fault_points& faults) { ask(*open(&faults)); };
  what.recover = [&] {
    db = open();
    ask(*db);
    ask(*db);
  };
  what.check = [&](const std::string& where) {
    EXPECT_EQ(effects(), 1) << where;
    EXPECT_EQ(order(*db, {"shop", "ann", "k-2"}).what.status, 409) << where;
  };
  const auto explored = testing::explore(what);
  EXPECT_GE(explored.runs, 8);
}

INSTANTIATE_TEST_SUITE_P(databases, requests, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& one) {
                           return one.param == dialect::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace settle

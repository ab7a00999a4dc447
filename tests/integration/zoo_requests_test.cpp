// The bugs of requests, guards, quantities and webhooks that the zoo keeps. Each is found by the exploration,
// the count of effects or the isolation spec that the real code passes.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "isolation/caller_specs.hpp"
#include "settle/once.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "settle/webhook.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_signer.hpp"

namespace settle {
namespace {

using zoo::bug;

// The bug is there as long as this is.
class with_bug {
 public:
  explicit with_bug(bug which) { zoo::present = which; }
  ~with_bug() { zoo::present = bug::none; }
  with_bug(const with_bug&) = delete;
  with_bug& operator=(const with_bug&) = delete;
};

// A service on SQLite. Deeds have no key: a second one is seen.
struct service {
  service() {
    db = open();
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table deeds (what text not null)");
    tx.commit();
  }

  std::unique_ptr<database> open(fault_points* faults = nullptr) {
    return sqlite::open(dir.file("service.db"), {.env = {.time = &time, .log = &log, .faults = faults}});
  }
  static void add_deed(transaction& tx) { tx.execute("insert into deeds (what) values ('x')"); }
  std::int64_t deeds() { return db->read().execute("select count(*) from deeds")[0][0].integer(); }
  void forget(const std::string& records) {
    auto tx = db->begin();
    tx.execute("delete from deeds");
    tx.execute("delete from " + records);
    tx.commit();
  }

  test::temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  std::unique_ptr<database> db;
};

struct found {
  int lost = 0;
  int doubled = 0;
  void judge(std::int64_t deeds) {
    lost += deeds < 1;
    doubled += deeds > 1;
  }
  friend bool operator==(const found&, const found&) = default;
};

// Whoever gets no answer asks again, as clients do.
found explore_request(bug which) {
  const with_bug present(which);
  service shop;
  const auto ask = [](database& db) {
    once(db, {"shop", "ann", "k-1"}, [](transaction& tx) {
      service::add_deed(tx);
      return answer{.body = "thanks"};
    });
  };
  found all;
  testing::explore({.prepare = [&] { shop.forget("settle_idempotency_keys"); },
                    .run = [&](fault_points& faults) { ask(*shop.open(&faults)); },
                    .recover = [&] { ask(*shop.db); },
                    .check = [&](const std::string&) { all.judge(shop.deeds()); }});
  return all;
}

// Proves V3, I4, I5
TEST(zoo_requests, key_recorded_after_commit_doubles_and_is_found) {
  EXPECT_EQ(explore_request(bug::none), found());
  EXPECT_GT(explore_request(bug::key_recorded_after_commit).doubled, 0);
}

// What the second of two callers is told whose texts are alike when they are joined.
once_result second_answer(bug which) {
  const with_bug present(which);
  service shop;
  const auto ask = [&](const request_identity& who) {
    return once(*shop.db, who, [&](transaction& tx) {
      service::add_deed(tx);
      return answer{.body = "for " + std::string(who.caller)};
    });
  };
  ask({"shop", "a:b", "c"});
  return ask({"shop", "a", "b:c"});
}

// Proves V3, I3
TEST(zoo_requests, key_joined_as_text_answers_one_caller_with_what_another_got_and_is_found) {
  EXPECT_EQ(second_answer(bug::none).what.body, "for a");
  const auto told = second_answer(bug::key_joined_as_text);
  EXPECT_EQ(told.outcome, once_outcome::replayed);
  EXPECT_EQ(told.what.body, "for a:b");
}

// A provider sends again what was not answered with 200, and nothing else.
found explore_webhook(bug which) {
  const with_bug present(which);
  service shop;
  const webhook::inbox payments(webhook::stripe("payments", {"secret"}));
  const std::string body = R"({"id":"evt_1","type":"paid","created":1,"data":{"object":{"id":"7"}}})";
  bool answered = false;
  const auto send = [&](database& to) {
    if (answered) return;
    const auto signature = test::stripe_signature("secret", to.env().now(), body);
    answered =
        payments.receive(to, {.headers = {{"Stripe-Signature", signature}}, .body = body}).status == 200;
  };
  const auto work = [](database& in) {
    webhook::worker one(in);
    one.on("payments", "", [](const webhook::received&, transaction& tx) {
      service::add_deed(tx);
      return webhook::answer::done;
    });
    while (one.run_once()) {
    }
  };
  found all;
  testing::explore({.prepare =
                        [&] {
                          answered = false;
                          shop.forget("settle_webhook_events");
                        },
                    .run =
                        [&](fault_points& faults) {
                          const auto faulty = shop.open(&faults);
                          send(*faulty);
                          work(*faulty);
                        },
                    .recover =
                        [&] {
                          send(*shop.db);
                          shop.time.advance(std::chrono::hours(1));
                          work(*shop.db);
                        },
                    .check = [&](const std::string&) { all.judge(shop.deeds()); }});
  return all;
}

// Proves V3, A3
TEST(zoo_requests, webhook_answered_before_commit_loses_and_is_found) {
  EXPECT_EQ(explore_webhook(bug::none), found());
  EXPECT_GT(explore_webhook(bug::webhook_answered_before_commit).lost, 0);
}

class postgres_zoo_requests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  static std::string failure_of(bug which, isolation::exploration (*spec)(isolation::callers_world&)) {
    const with_bug present(which);
    isolation::callers_world world;
    world.open();
    return spec(world).failure;
  }

  static void expect_found(bug which, isolation::exploration (*spec)(isolation::callers_world&),
                           const std::string& as) {
    EXPECT_EQ(failure_of(bug::none, spec), "");
    const auto failure = failure_of(which, spec);
    EXPECT_TRUE(failure.starts_with(as)) << failure;
  }
};

// Proves V3, I4, I5
TEST_F(postgres_zoo_requests, key_checked_then_inserted_is_found_as_two_effects) {
  expect_found(bug::key_checked_then_inserted, isolation::requests_with_one_key, "both have run");
}

// Proves V3, G1
TEST_F(postgres_zoo_requests, state_checked_then_changed_is_found_as_two_moves) {
  expect_found(bug::state_checked_then_changed, isolation::movers_of_one_row, "2 have moved it");
}

// Proves V3, G5
TEST_F(postgres_zoo_requests, quantity_read_then_written_is_found_as_oversold) {
  expect_found(bug::quantity_read_then_written, isolation::takers_of_the_rest, "taken taken, seats -1,3");
  expect_found(bug::quantity_read_then_written, isolation::baskets_in_opposite_order,
               "taken taken, seats -1,-1");
}

// Proves V3, A3
TEST_F(postgres_zoo_requests, webhook_checked_then_noted_is_found_as_two_effects) {
  expect_found(bug::webhook_checked_then_noted, isolation::deliveries_of_one_webhook, "both have run");
}

}  // namespace
}  // namespace settle

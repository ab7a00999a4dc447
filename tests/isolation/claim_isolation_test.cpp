// Holders of one key that follow each other, in every order of their steps: each has a higher epoch than all
// before it, also one that had read its clock before it had to wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "isolation/runner.hpp"
#include "settle/claims.hpp"
#include "settle/postgres.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

constexpr request_identity click{"shop", "ann", "k-1"};

// After it was read, the session's step may end: what was read grows old.
class pausing_clock final : public time_source {
 public:
  timestamp now() override {
    const auto read = timestamp(std::chrono::microseconds(++ticks_));
    if (auto* to = std::exchange(pauses_, nullptr)) to->pause();
    return read;
  }
  void pause_once(session& in) { pauses_ = &in; }

 private:
  static inline std::atomic<std::int64_t> ticks_ = 1'700'000'000'000'000;
  session* pauses_ = nullptr;
};

class claimer {
 public:
  claimer(const std::string& conninfo, session& as, std::vector<std::int64_t>& epochs, std::mutex& mutex)
      : session_(as), epochs_(epochs), mutex_(mutex) {
    db_ = postgres::open(test::with(conninfo, "application_name=" + as.name()),
                         {.env = {.time = &clock_, .log = &log_}, .busy_timeout = 60s});
    keys_ = open_claims(*db_);
  }

  void claim(bool pauses) {
    if (pauses) clock_.pause_once(session_);
    const auto got = keys_->claim({.who = click});
    if (got.outcome != claim_outcome::claimed) return;
    held_ = got.token;
    const std::scoped_lock lock(mutex_);
    epochs_.push_back(got.token.epoch);
  }
  void forget() { held_.reset(); }
  void release() {
    if (held_) keys_->release(click, *held_);
    held_.reset();
  }

 private:
  session& session_;
  std::vector<std::int64_t>& epochs_;
  std::mutex& mutex_;
  pausing_clock clock_;
  test::quiet_log log_;
  std::unique_ptr<database> db_;
  std::unique_ptr<claims> keys_;
  std::optional<claim_token> held_;
};

// Proves I7, V3
TEST(claim_isolation, in_every_order_of_claims_and_releases_the_epoch_of_a_key_grows) {
  if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const test::scratch_database own;
  const auto conninfo = test::with(own.conninfo(), "options=-csynchronous_commit=off");
  migrate(*postgres::open(conninfo));
  std::vector<std::int64_t> epochs;
  std::mutex mutex;

  runner all(conninfo);
  std::map<std::string, std::unique_ptr<claimer>> who;
  for (const auto* name : {"first", "second"}) {
    auto& as = all.add(name);
    auto& by = *(who[name] = std::make_unique<claimer>(conninfo, as, epochs, mutex));
    const auto claim = [&by] { by.claim(true); };
    as.call(std::string(name) + " reads its clock", claim)
        .call(std::string(name) + " claims", claim)
        .call(std::string(name) + " releases", [&by] { by.release(); });
  }
  // A claim that was there before, and whose end has not committed yet.
  all.add("former").sql("begin; delete from settle.idempotency_claims").sql("commit");
  const auto done = all.explore({
      .reset =
          [&] {
            test::run_sql(conninfo, "delete from settle.idempotency_claims");
            epochs.clear();
            for (const auto& [unused, one] : who) one->forget();
            who.at("first")->claim(false);
            who.at("first")->forget();
          },
      .check = [&]() -> std::string {
        std::string text;
        for (const auto one : epochs) text += " " + std::to_string(one);
        const auto falls = std::ranges::adjacent_find(epochs, std::greater_equal<>()) != epochs.end();
        return falls ? "epochs:" + text : "";
      },
  });
  EXPECT_EQ(done.failure, "");
  EXPECT_GT(done.ran, 10);
  std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
}

}  // namespace
}  // namespace settle::isolation

// A lock that has expired while its owner is at work, in every order: the owner writes under its fence,
// somebody takes over and writes, the owner's loop renews.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "isolation/runner.hpp"
#include "settle/error.hpp"
#include "settle/lock.hpp"
#include "settle/postgres.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

// Long enough to be ended by a commit, and what an order that cannot happen costs.
constexpr duration takeover_wait = 2s;

// Reads a counter, and later writes the next number under the fence of its lock. Two who believe that they
// own the lock would write the same number.
class counting_owner {
 public:
  counting_owner(const std::string& conninfo, const std::string& name)
      : db_(postgres::open(test::with(conninfo, "application_name=" + name), {.env = {.log = &log_}})),
        locks_(*db_, {.takeover_wait = takeover_wait}) {}

  void take() {
    if (auto got = locks_.try_acquire("counter")) held_ = std::move(*got);
  }
  void read() { last_ = db_->read().execute("select last from counter")[0][0].integer(); }
  void write() {
    if (!held_) return;
    tx_.emplace(db_->begin());
    try {
      fenced(*tx_, *held_);
      tx_->execute("insert into written values ($1)", {last_ + 1});
      tx_->execute("update counter set last = $1", {last_ + 1});
    } catch (const error& e) {
      tx_.reset();
      if (e.code() != errc::ownership_lost) throw;
    }
  }
  void commit() {
    if (tx_) tx_->commit();
    tx_.reset();
  }
  void renew() { held_->renew(); }
  void forget() {
    tx_.reset();
    held_.reset();
  }

 private:
  test::quiet_log log_;
  std::unique_ptr<database> db_;
  locks locks_;
  std::optional<lock> held_;
  std::optional<owned_transaction> tx_;
  std::int64_t last_ = 0;
};

// Proves G2, V3
TEST(lock_isolation, in_every_order_of_expiry_take_over_and_renewal_one_owner_writes) {
  if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const test::scratch_database own;
  const auto conninfo = test::with(own.conninfo(), "options=-csynchronous_commit=off");
  const auto run = [&](const std::string& sql) { return test::run_sql(conninfo, sql); };
  migrate(*postgres::open(conninfo));
  run("create table written (what bigint); create table counter (last bigint); insert into counter values "
      "(0)");
  counting_owner first(conninfo, "first"), second(conninfo, "second");

  runner all(conninfo);
  all.add("first").call("first writes", [&] { first.write(); }).call("first commits", [&] {
    first.commit();
  });
  all.add("second")
      .call("second takes over", [&] { second.take(); })
      .call("second reads and writes",
            [&] {
              second.read();
              second.write();
            })
      .call("second commits", [&] { second.commit(); });
  all.add("renewal").call("first is renewed", [&] { first.renew(); });
  const auto done = all.explore({
      .reset =
          [&] {
            first.forget();
            second.forget();
            run("delete from written; update counter set last = 0");
            first.take();
            first.read();  // so long ago that anybody may have written since
            run("update settle.locks set held_until = 1");
          },
      .check = [&]() -> std::string {
        const auto found =
            run("select coalesce(string_agg(what::text, ' ' order by what), '') || '; ' || (select last from "
                "counter) "
                "from written");
        return found == "; 0" || found == "1; 1" || found == "1 2; 2" ? "" : "written: " + found;
      },
  });
  EXPECT_EQ(done.failure, "");
  EXPECT_GT(done.ran, 40);
  std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
}

}  // namespace
}  // namespace settle::isolation

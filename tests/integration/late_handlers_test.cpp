// Handlers that come back after handler_timeout as if nothing had happened, on both databases.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct late_handlers : test::failing_consumer {
  static constexpr auto timeout = 400ms;
  static void sleep_too_long() { std::this_thread::sleep_for(3 * timeout); }

  void write(transaction& tx, const std::string& what) {
    tx.execute("insert into things_done (what) values ($1)", {what});
  }
  void hang_in(transaction& tx) const {
    tx.execute(GetParam() == dialect::postgres
                   ? "select pg_sleep(60)"
                   : "with recursive forever(n) as (select 1 union all select n + 1 from forever) select "
                     "max(n) from forever");
  }

  // Of three messages the second one is late in this way, and no word of it is thrown. Nothing of it is
  // applied and it is charged; when it is in time, it is applied once.
  void expect_charged(const std::function<void(transaction&)>& late) {
    for (const auto* id : {"1", "2", "3"}) deliver(id, id);
    bool slow = true;
    auto options = plain();
    options.handler_timeout = timeout;
    consumer c(*db, broker, options);
    c.on("things", "thing.done", [&](const message& m, transaction& tx) {
      if (m.id == "2" && slow)
        late(tx);
      else
        write(tx, m.id);
    });
    drain(c);
    auto done = effects();
    std::ranges::sort(done);
    EXPECT_EQ(done, (names{"1", "3"}));
    EXPECT_EQ(c.counts().failures, 1);
    EXPECT_EQ(c.counts().pauses, 0);
    EXPECT_EQ(log.count("handler_failed"), 1u);
    ASSERT_EQ(count("parked_messages"), 1);
    EXPECT_EQ(number("select count(*) from " + table("parked_messages") +
                     " where cast(history as text) like '%handler_timeout%'"),
              1);
    slow = false;
    time.advance(1s);
    drain(c);
    done = effects();
    std::ranges::sort(done);
    EXPECT_EQ(done, (names{"1", "2", "3"}));
    EXPECT_EQ(count("parked_messages"), 0);
  }
};

// Proves C1, C3
TEST_P(late_handlers, one_that_never_touched_the_database_is_charged) {
  expect_charged([](transaction&) { sleep_too_long(); });
}

// Proves C1, C3
TEST_P(late_handlers, what_one_wrote_before_it_slept_does_not_commit) {
  expect_charged([&](transaction& tx) {
    write(tx, "late");
    sleep_too_long();
  });
}

// Proves C1, C3
TEST_P(late_handlers, one_that_sleeps_first_can_write_nothing_any_more) {
  expect_charged([&](transaction& tx) {
    sleep_too_long();
    test::code_of([&] { write(tx, "late"); });
  });
}

// Proves C1, C3
TEST_P(late_handlers, one_that_swallows_the_error_of_its_cancelled_statement_is_charged) {
  expect_charged([&](transaction& tx) {
    write(tx, "late");
    EXPECT_NE(test::code_of([&] { hang_in(tx); }), std::nullopt);
    test::code_of([&] { write(tx, "later still"); });
  });
}

INSTANTIATE_TEST_SUITE_P(databases, late_handlers, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle

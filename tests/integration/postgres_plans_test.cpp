// PostgreSQL keeps a plan that was made when a table was small. What is empty at night and full by day must
// be looked up in indexes all the same.
#include <gtest/gtest.h>

#include <thread>

#include "settle/once.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

struct postgres_plans : test::failing_consumer {
  // With its sessions, which say what they have read as they end.
  void close() {
    db.reset();
    while (own->run("select count(*) from pg_stat_activity where datname = current_database() and "
                    "backend_type = 'client backend' and pid <> pg_backend_pid()") != "0")
      std::this_thread::sleep_for(5ms);
  }
};
INSTANTIATE_TEST_SUITE_P(databases, postgres_plans, ::testing::Values(dialect::postgres),
                         [](const auto&) { return "postgres"; });

// Proves C3, I4
TEST_P(postgres_plans, made_for_empty_tables_read_none_of_them_whole_when_they_fill) {
  close();
  own->run("vacuum analyze");
  own->run("select pg_stat_reset()");
  open();
  {
    auto c = make_consumer();
    for (int i = 0; i < 40; ++i) {
      const auto n = std::to_string(i);
      deliver(n, "key of " + n);
      if (i % 4 == 0) refusing[n] = failure_class::poison;
      if (i % 4 == 1) refusing[n] = failure_class::permanent;
      drain(*c);
      time.advance(200ms);
      once(*db, {"shop", "ann", n}, [](transaction&) { return answer{.status = 201}; });
    }
    drain_for(*c, 60s);
    EXPECT_EQ(dead_letters(*db).size(), 20u);
  }
  close();
  EXPECT_EQ(own->run("select string_agg(relname || ' ' || seq_scan, ', ') from pg_stat_user_tables where "
                     "seq_scan > 0 and relname in ('processed_events', 'parked_keys', 'parked_messages', "
                     "'idempotency_keys')"),
            "");
  EXPECT_NE(own->run("select idx_scan from pg_stat_user_tables where relname = 'parked_keys'"), "0");
}

}  // namespace
}  // namespace settle

// Idempotent requests in a transaction that a service has begun on a connection of its own.
#include <gtest/gtest.h>

#include <optional>

#include "settle/error.hpp"
#include "settle/once.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/service_connection.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

constexpr request_identity click{"shop", "ann", "k-1"};

struct joined_requests : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    const bool postgres = GetParam() == dialect::postgres;
    if (postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = postgres ? postgres::open(own->conninfo()) : sqlite::open(dir.file("service.db"));
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table deeds (what text not null)");
    tx.execute("create table seats (number integer primary key)");
    tx.commit();
    service.emplace(postgres ? test::service_connection::to_postgres(own->conninfo())
                             : test::service_connection::to_sqlite(dir.file("service.db")));
  }

  static void add(transaction& tx, const std::string& what) {
    tx.execute("insert into deeds (what) values ($1)", {what});
  }
  static answer work(transaction& tx) {
    add(tx, "inner");
    return {.body = "done"};
  }
  // The same seat twice, which its table refuses.
  static answer fail(transaction& tx) {
    add(tx, "half");
    for (int i = 0; i < 2; ++i) tx.execute("insert into seats (number) values (7)");
    return {};
  }

  // In the order in which they were done.
  std::string deeds() {
    std::string all;
    const auto rows = db->read().execute("select what from deeds");
    for (std::size_t i = 0; i < rows.size(); ++i) all += (i > 0 ? " " : "") + rows[i][0].text();
    return all;
  }

  std::optional<test::scratch_database> own;
  test::temp_dir dir;
  std::unique_ptr<database> db;
  std::optional<test::service_connection> service;
};

// Proves I5
TEST_P(joined_requests, whose_statement_fails_leave_what_their_owner_wrote) {
  service->begin();
  service->run("insert into deeds (what) values ('outer')");
  const auto tx = service->join();
  EXPECT_EQ(test::code_of([&] { once(*tx, click, fail); }), errc::constraint_violated);
  EXPECT_EQ(once(*tx, click, work).outcome, once_outcome::executed) << "the transaction goes on";
  service->run("commit");
  EXPECT_EQ(deeds(), "outer inner");
  EXPECT_EQ(once(*db, click, work).outcome, once_outcome::replayed);
}

// Proves I5
TEST_P(joined_requests, that_are_refused_their_record_leave_what_their_owner_wrote) {
  const auto nested = [](transaction& outer) {
    add(outer, "half");
    return once(outer, click, work).what;
  };
  for (const auto how : {keeps::everything, keeps::answer}) {
    service->begin();
    service->run("insert into deeds (what) values ('outer')");
    const auto tx = service->join();
    const auto twice = [&](transaction& in) {
      auto made = nested(in);
      made.keep = how;
      return made;
    };
    // With `answer` the inner one is undone with the rest, and so is its record.
    EXPECT_EQ(test::code_of([&] { once(*tx, click, twice); }),
              how == keeps::everything ? std::optional(errc::constraint_violated) : std::nullopt);
    service->run("commit");
  }
  EXPECT_EQ(deeds(), "outer outer");
}

INSTANTIATE_TEST_SUITE_P(databases, joined_requests, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& one) {
                           return one.param == dialect::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace settle

// The user's own PGconn* taken into an open transaction.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

constexpr query add_note{"test.add_note", "", "insert into notes (id) values ($1)"};

// A connection as an application would open it, with nothing of ours.
struct own_connection {
  explicit own_connection(const std::string& conninfo) : conn(PQconnectdb(conninfo.c_str()), PQfinish) {}
  ExecStatusType run(const char* sql) const {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(conn.get(), sql), PQclear);
    return PQresultStatus(done.get());
  }
  PGconn* get() const { return conn.get(); }
  std::unique_ptr<PGconn, void (*)(PGconn*)> conn;
};

class postgres_joined : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
    server_->run("create table notes (id bigint primary key)");
    mine_.emplace(server_->conninfo());
  }
  std::string rows() const { return server_->run("select count(*) from notes"); }

  std::optional<scratch_database> server_;
  std::optional<own_connection> mine_;
};

// Proves O1
TEST_F(postgres_joined, writes_commit_or_roll_back_with_the_owners_transaction) {
  for (const auto* end : {"rollback", "commit"}) {
    ASSERT_EQ(mine_->run("begin"), PGRES_COMMAND_OK);
    {
      postgres::joined_transaction tx(mine_->get());
      tx.execute(add_note, {1});
      tx.post(add_note, {2});
      const std::vector<parameters> more{{3}, {4}};
      EXPECT_EQ(tx.execute_many(add_note, more), (std::vector<std::int64_t>{1, 1}));
      EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 4);
    }
    EXPECT_EQ(rows(), "0") << "not visible before the end";
    ASSERT_EQ(mine_->run(end), PGRES_COMMAND_OK);
  }
  EXPECT_EQ(rows(), "4");
}

TEST_F(postgres_joined, leaves_the_connection_as_it_was) {
  for (const int nonblocking : {0, 1}) {
    ASSERT_EQ(PQsetnonblocking(mine_->get(), nonblocking), 0);
    mine_->run("begin");
    postgres::joined_transaction(mine_->get()).execute("select 1");
    EXPECT_EQ(PQisnonblocking(mine_->get()), nonblocking);
    EXPECT_EQ(PQpipelineStatus(mine_->get()), PQ_PIPELINE_OFF);
    EXPECT_EQ(PQtransactionStatus(mine_->get()), PQTRANS_INTRANS);
    mine_->run("rollback");
  }
  EXPECT_EQ(mine_->run("select 1 / count(*) from pg_prepared_statements"), PGRES_FATAL_ERROR)
      << "a name was left behind";
}

TEST_F(postgres_joined, refuses_what_it_could_not_leave_as_it_was) {
  const auto join = [&] { return code_of([&] { postgres::joined_transaction tx(mine_->get()); }); };
  EXPECT_EQ(join(), errc::invalid_argument) << "no transaction";
  ASSERT_EQ(PQenterPipelineMode(mine_->get()), 1);
  EXPECT_EQ(join(), errc::invalid_argument) << "the owner's pipeline";
  ASSERT_EQ(PQexitPipelineMode(mine_->get()), 1);
  mine_->run("begin");
  ASSERT_EQ(PQsendQuery(mine_->get(), "select 1"), 1);
  EXPECT_EQ(join(), errc::invalid_argument) << "the owner's answer is due";
  while (auto* left = PQgetResult(mine_->get())) PQclear(left);
  EXPECT_EQ(join(), std::nullopt);
  mine_->run("set local client_encoding = 'LATIN1'");
  EXPECT_EQ(join(), errc::invalid_argument) << "another encoding";
}

TEST_F(postgres_joined, notices_that_its_owner_has_ended_the_transaction) {
  mine_->run("begin");
  postgres::joined_transaction tx(mine_->get());
  mine_->run("commit");
  EXPECT_EQ(code_of([&] { tx.execute(add_note, {1}); }), errc::transaction_lost);
  EXPECT_EQ(rows(), "0");
}

TEST_F(postgres_joined, a_failed_statement_fails_the_owners_transaction_and_not_the_connection) {
  mine_->run("begin");
  postgres::joined_transaction tx(mine_->get());
  tx.execute(add_note, {1});
  EXPECT_EQ(code_of([&] { tx.execute(add_note, {1}); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { tx.execute(add_note, {2}); }), errc::transaction_lost);
  EXPECT_EQ(mine_->run("rollback"), PGRES_COMMAND_OK);
  EXPECT_EQ(mine_->run("select 1"), PGRES_TUPLES_OK);
}

// Proves O1
TEST_F(postgres_joined, a_row_that_cannot_be_sent_keeps_the_others_back_and_the_connection_usable) {
  mine_->run("begin");
  postgres::joined_transaction tx(mine_->get());
  const std::vector<parameters> rows{{"1"}, {std::string("2\0003", 3)}};
  EXPECT_EQ(code_of([&] { tx.execute_many(add_note, rows); }), errc::invalid_argument);
  EXPECT_EQ(PQpipelineStatus(mine_->get()), PQ_PIPELINE_OFF);
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 0);
  EXPECT_EQ(mine_->run("rollback"), PGRES_COMMAND_OK);
}

TEST_F(postgres_joined, cannot_be_ended_through_it) {
  mine_->run("begin");
  postgres::joined_transaction tx(mine_->get());
  for (const auto* sql : {"commit", "/* x */ rollback", "prepare transaction 'x'"})
    EXPECT_EQ(code_of([&] { tx.execute(sql); }), errc::transaction_control) << sql;
  EXPECT_EQ(PQtransactionStatus(mine_->get()), PQTRANS_INTRANS);
}

}  // namespace
}  // namespace settle::test

// Settle's statements run through libpqxx.
#include "settle/adapter/libpqxx.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <pqxx/pqxx>

#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

constexpr query add_cell{
    "test.add_cell", "",
    "insert into cells (number, real, words, bytes, nothing) values ($1, $2, $3, $4, $5)"};

class libpqxx_adapter : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
    server_->run("create table cells (number bigint, real float8, words text, bytes bytea, nothing text)");
  }
  static statement some_cell() {
    return {add_cell,
            {std::numeric_limits<std::int64_t>::min(), 0.1, "it's \"Zürich\"",
             blob{std::string("\0\xff\\", 3)}, nullptr}};
  }
  std::optional<scratch_database> server_;
};

// Proves O1
TEST_F(libpqxx_adapter, commits_and_rolls_back_with_the_callers_transaction) {
  pqxx::connection mine(server_->conninfo());
  {
    pqxx::work tx(mine);
    EXPECT_EQ(libpqxx::execute(tx, some_cell()).affected_rows(), 1u);
  }
  EXPECT_EQ(server_->run("select count(*) from cells"), "0");
  pqxx::work tx(mine);
  libpqxx::execute(tx, some_cell());
  tx.commit();
  EXPECT_EQ(server_->run("select count(*) from cells"), "1");
}

TEST_F(libpqxx_adapter, carries_every_kind_of_value) {
  pqxx::connection mine(server_->conninfo());
  pqxx::work tx(mine);
  libpqxx::execute(tx, some_cell());
  tx.commit();
  EXPECT_EQ(server_->run("select number || '|' || real || '|' || words || '|' || bytes::text || '|' || "
                         "coalesce(nothing, 'null') from cells"),
            "-9223372036854775808|0.1|it's \"Zürich\"|\\x00ff5c|null");
}

TEST_F(libpqxx_adapter, refuses_what_would_be_cut_short) {
  pqxx::connection mine(server_->conninfo());
  pqxx::work tx(mine);
  const statement cut{{"test.cut", "", "select $1::text"}, {std::string("a\0b", 3)}};
  EXPECT_EQ(code_of([&] { libpqxx::execute(tx, cut); }), errc::invalid_argument);
  const statement none{{"test.none", "select 1", ""}, {}};
  EXPECT_EQ(code_of([&] { libpqxx::execute(tx, none); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::test

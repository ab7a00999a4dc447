// The names of columns that are generated beside the queries, against what the databases say.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "queries/broker.hpp"
#include "queries/consume.hpp"
#include "queries/dead_letter.hpp"
#include "queries/doctor.hpp"
#include "queries/guard.hpp"
#include "queries/inspect.hpp"
#include "queries/lock.hpp"
#include "queries/once.hpp"
#include "queries/outbox.hpp"
#include "queries/quantity.hpp"
#include "queries/sql.hpp"
#include "queries/verify.hpp"
#include "queries/webhook.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/handle.hpp"
#include "sqlite/packed_tables.hpp"
#include "support/postgres_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

struct described {
  query text;
  std::string columns;
};

template <class List>
void append(std::vector<described>& to, const List& list) {
  for (const auto& [text, columns] : list) to.push_back({text, std::string(columns)});
}

// Every query whose columns have names, but those that are about tables of the user's.
std::vector<described> all_queries() {
  std::vector<described> all;
  append(all, queries::broker::described_columns);
  append(all, queries::consume::described_columns);
  append(all, queries::dead_letter::described_columns);
  append(all, queries::doctor::described_columns);
  append(all, queries::guard::described_columns);
  append(all, queries::inspect::described_columns);
  append(all, queries::lock::described_columns);
  append(all, queries::once::described_columns);
  append(all, queries::outbox::described_columns);
  append(all, queries::quantity::described_columns);
  append(all, queries::sql::described_columns);
  append(all, queries::verify::described_columns);
  append(all, queries::webhook::described_columns);
  std::erase_if(all, [](const described& one) {
    return (std::string(one.text.sqlite) + std::string(one.text.postgres)).find("{table}") !=
           std::string::npos;
  });
  return all;
}

void append_name(std::string& to, const char* name) { to += (to.empty() ? "" : ", ") + std::string(name); }

// The columns of a statement in one of the files, or why it has none.
std::string columns_in(const std::vector<sqlite::handle>& files, std::string_view sql) {
  std::string why;
  for (const auto& file : files) {
    sqlite3_stmt* made = nullptr;
    const int status =
        sqlite3_prepare_v2(file.get(), sql.data(), static_cast<int>(sql.size()), &made, nullptr);
    const sqlite::prepared_handle statement(made);
    if (status != SQLITE_OK) {
      why = sqlite3_errmsg(file.get());
      continue;
    }
    std::string names;
    for (int i = 0; i < sqlite3_column_count(made); ++i) append_name(names, sqlite3_column_name(made, i));
    return names;
  }
  return why;
}

TEST(query_columns, have_on_sqlite_the_names_that_were_generated) {
  const temp_dir dir;
  migrate(*sqlite::open(dir.file("service.db")));
  sqlite::open_broker(dir.file("broker.db"));
  std::vector<sqlite::handle> files;
  for (const auto* name : {"service.db", "broker.db"}) {
    files.push_back(sqlite::open_handle({dir.file(name)}, 0));
    sqlite::add_packed_tables(files.back().get());
  }
  std::size_t looked_at = 0;
  for (const auto& one : all_queries()) {
    if (one.text.sqlite.empty()) continue;
    const auto found = columns_in(files, one.text.sqlite);
    if (found.empty()) continue;  // on this database it answers with no rows
    EXPECT_EQ(found, one.columns) << one.text.name;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 60u);
}

TEST(query_columns, have_on_postgres_the_names_that_were_generated) {
  if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
  const scratch_database own;
  migrate(*postgres::open(own.conninfo()));
  const std::unique_ptr<PGconn, decltype(&PQfinish)> session(PQconnectdb(own.conninfo().c_str()), &PQfinish);
  const auto said = [&](PGresult* answer) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> held(answer, &PQclear);
    if (PQresultStatus(answer) != PGRES_COMMAND_OK) return std::string(PQresultErrorMessage(answer));
    std::string names;
    for (int i = 0; i < PQnfields(answer); ++i) append_name(names, PQfname(answer, i));
    return names;
  };
  std::size_t looked_at = 0;
  for (const auto& one : all_queries()) {
    if (one.text.postgres.empty()) continue;
    ASSERT_EQ(said(PQprepare(session.get(), "", std::string(one.text.postgres).c_str(), 0, nullptr)), "")
        << one.text.name;
    const auto found = said(PQdescribePrepared(session.get(), ""));
    if (found.empty()) continue;
    EXPECT_EQ(found, one.columns) << one.text.name;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 80u);
}

}  // namespace
}  // namespace settle::test

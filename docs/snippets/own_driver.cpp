// Publishing through a connection that is not Settle's: publish_statement() gives the SQL and the values,
// and the caller's own driver, here the plain SQLite C interface, runs them in the caller's transaction.
// docs/reference/sql.md quotes the marked parts; tools/check_snippets compares them.
//
// Usage: own_driver <folder>      an existing, empty folder for the database file
#include <sqlite3.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

#include "settle/database.hpp"
#include "settle/environment.hpp"
#include "settle/ids.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"

namespace {

void check(sqlite3* db, int result) {
  if (result != SQLITE_OK && result != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(db));
}

// [snippet: open_own]
std::unique_ptr<sqlite3, decltype(&sqlite3_close)> open_own(const std::string& path) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open(path.c_str(), &raw);
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db(raw, sqlite3_close);
  check(raw, opened);
  sqlite3_busy_timeout(raw, 10'000);
  sqlite3_wal_autocheckpoint(raw, 0);  // checkpoints are Settle's
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return db;
}
// [end]

// [snippet: run_own]
void run(sqlite3* db, const settle::statement& what) {
  sqlite3_stmt* raw = nullptr;
  const std::string sql(what.text.sqlite);
  check(db, sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr));
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> stmt(raw, sqlite3_finalize);
  for (int i = 0; i < static_cast<int>(what.values.size()); ++i) {  // $1 is parameter 1, and so on
    const auto& value = what.values[static_cast<std::size_t>(i)].variant();
    if (const auto* number = std::get_if<std::int64_t>(&value))
      check(db, sqlite3_bind_int64(raw, i + 1, *number));
    else if (const auto* text = std::get_if<std::string>(&value))
      check(db, sqlite3_bind_text64(raw, i + 1, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8));
    else if (const auto* blob = std::get_if<settle::blob>(&value))
      check(db, sqlite3_bind_blob64(raw, i + 1, blob->bytes.data(), blob->bytes.size(), SQLITE_STATIC));
    else
      check(db, sqlite3_bind_null(raw, i + 1));  // it has no other kinds
  }
  check(db, sqlite3_step(raw));
}
// [end]

void execute(sqlite3* db, const char* sql) { check(db, sqlite3_exec(db, sql, nullptr, nullptr, nullptr)); }

int own_driver(const std::string& folder) {
  const std::string path = folder + "/shop.db";
  const auto shop = settle::sqlite::open(path);
  settle::migrate(*shop);
  const auto db = open_own(path);
  execute(db.get(), "create table orders (id text primary key)");

  // [snippet: publish_own]
  const settle::event event{.topic = "orders", .type = "order.placed", .key = "order-1", .payload = "{}"};
  const auto id = settle::system_ids().next_as<settle::event_id>();
  const auto insert = settle::publish_statement(event, {}, id, settle::system_time().now());

  execute(db.get(), "begin immediate");
  execute(db.get(), "insert into orders (id) values ('order-1')");
  run(db.get(), insert);
  execute(db.get(), "commit");
  // [end]

  auto look = shop->read();
  const auto rows =
      look.execute("select event_id, status, aggregate_id, hex(payload) from settle_outbox_events");
  const bool right = rows.size() == 1 && rows[0][0].text() == id.text() && rows[0][1].text() == "PENDING" &&
                     rows[0][2].text() == "order-1" && rows[0][3].text() == "7B7D";
  std::printf("%s\n", right ? "one event is waiting" : "the outbox is not as expected");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: own_driver <folder>\n");
    return 2;
  }
  try {
    return own_driver(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "own_driver: %s\n", e.what());
    return 1;
  }
}

// The user's own sqlite3* with an open transaction, behind the sql interface.
#include <fmt/format.h>

#include <string>

#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/statements.hpp"

namespace settle::inline v0::sqlite {
namespace {

class joined_connection final : public connection {
 public:
  explicit joined_connection(sqlite3* db) : db_(db), statements_(db) { make_safe(); }

  dialect speaks() const override { return dialect::sqlite; }

  result execute(const query& text, std::span<const value> values) override {
    check_open();
    return statements_.run(statements_.named(text), values);
  }
  result execute(std::string_view sql, std::span<const value> values) override {
    check_open();
    return statements_.run(statements_.ad_hoc(sql), values);
  }
  std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows) override {
    check_open();
    return statements_.run_many(statements_.named(text), rows);
  }
  void execute_script(std::string_view sql) override {
    check_open();
    run(db_, std::string(sql).c_str());
  }

  // The transaction began before us and ends after us: its owner does both.
  void begin_write(std::stop_token) override { refuse(); }
  void begin_read() override { refuse(); }
  void commit() override { refuse(); }
  void rollback() noexcept override {}

 private:
  [[noreturn]] static void refuse() {
    throw error(errc::transaction_control, "a joined transaction is begun and ended by its owner");
  }

  void check_open() const {
    if (sqlite3_get_autocommit(db_) != 0)
      throw error(errc::transaction_lost, "the joined transaction has ended");
  }

  // What a foreign connection may do differently from ours: begin without the write lock, use another
  // journal, never sync, and checkpoint by itself, which SQLite before 3.51.3 does not survive in all cases.
  // Commits that are synced later than ours are fine; the relay's tick takes care of that.
  void make_safe() {
    if (sqlite3_get_autocommit(db_) != 0)
      throw error(errc::invalid_argument, "the connection has no open transaction: BEGIN IMMEDIATE first");
    if (sqlite3_txn_state(db_, "main") != SQLITE_TXN_WRITE)
      throw error(errc::invalid_argument,
                  "the open transaction does not hold the write lock: begin it with BEGIN IMMEDIATE");
    if (!in_wal_mode(db_))
      throw error(
          errc::invalid_argument,
          fmt::format("{} is not in WAL mode: open it with settle::sqlite::open() once, which switches it",
                      sqlite3_db_filename(db_, "main")));
    if (read_pragma(db_, "pragma synchronous") == "0")
      throw error(errc::invalid_argument,
                  "the connection never syncs, and a power cut could damage the file for everyone: run "
                  "\"pragma synchronous = normal\" on it before BEGIN");
    sqlite3_wal_autocheckpoint(db_, 0);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }

  sqlite3* db_;
  statements statements_;
};

}  // namespace

joined_transaction::joined_transaction(sqlite3* open, const environment& env)
    : transaction(std::make_unique<joined_connection>(open), own_env_), own_env_(env) {}

joined_transaction::~joined_transaction() = default;

}  // namespace settle::inline v0::sqlite

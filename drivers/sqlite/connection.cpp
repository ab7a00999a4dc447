#include "sqlite/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/if_possible.hpp"
#include "settle/error.hpp"
#include "sqlite/packed_tables.hpp"

namespace settle::inline v0::sqlite {
namespace {

// Pragmas that would change what a commit promises, or checkpoint behind our back.
constexpr const char* guarded_pragmas[] = {"journal_mode", "synchronous", "wal_autocheckpoint",
                                           "wal_checkpoint", "locking_mode"};

// The savepoint of mark_parts(), which nobody else may set or leave. Marks nest, and the last one counts.
constexpr const char* marked_parts = "settle_parts";

int as_ms(duration d) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

// In the authorizer's words.
sql::savepoint_step as_step(std::string_view operation, std::string name) {
  using kind = sql::savepoint_step::kind;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return {operation == "BEGIN"     ? kind::set
          : operation == "RELEASE" ? kind::release
                                   : kind::roll_back,
          std::move(name)};
}

}  // namespace

sqlite_connection::sqlite_connection(const location& where, write_queue& queue, checkpointer& checkpoints,
                                     duration busy_timeout, const environment& env)
    : env_(env),
      queue_(queue),
      checkpoints_(checkpoints),
      busy_timeout_(busy_timeout),
      db_(open_handle(where, as_ms(busy_timeout))),
      statements_(db_.get()) {
  add_packed_tables(db_.get());
  sqlite3_set_authorizer(db_.get(), authorize, this);
  sqlite3_wal_hook(db_.get(), committed, this);
}

sqlite_connection::~sqlite_connection() { rollback(); }

// Refuses, when a statement is prepared, what would end the transaction or change its durability. Asked
// by SQLite itself, so that no spelling or comment gets past it.
int sqlite_connection::authorize(void* self, int action, const char* first, const char* second, const char*,
                                 const char*) {
  auto& own = *static_cast<sqlite_connection*>(self);
  if (own.controlling_) return SQLITE_OK;
  if (action == SQLITE_TRANSACTION) return SQLITE_DENY;
  if (action == SQLITE_SAVEPOINT && sqlite3_stricmp(second, marked_parts) == 0) return SQLITE_DENY;
  if (action == SQLITE_SAVEPOINT) own.noticed_ = as_step(first, second);
  if (action == SQLITE_PRAGMA && first != nullptr) {
    const auto is = [first](const char* name) { return sqlite3_stricmp(first, name) == 0; };
    const bool guarded = std::ranges::any_of(guarded_pragmas, is);
    const bool only_reads = second == nullptr && !is("wal_checkpoint");
    if (guarded && !only_reads) return SQLITE_DENY;
  }
  return SQLITE_OK;
}

int sqlite_connection::committed(void* self, sqlite3*, const char*, int pages) {
  static_cast<sqlite_connection*>(self)->pages_in_log_ = pages;
  return SQLITE_OK;
}

// Kept prepared, since every transaction needs them. SQLite may have to prepare one again when it runs, and
// asks the authorizer then.
int sqlite_connection::control(prepared_handle& kept, const char* sql) noexcept {
  controlling_ = true;
  int done = SQLITE_OK;
  if (!kept) {
    sqlite3_stmt* made = nullptr;
    done = sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    kept.reset(made);
  }
  if (done == SQLITE_OK) {
    sqlite3_step(kept.get());
    done = sqlite3_reset(kept.get());  // says how the step went
  }
  controlling_ = false;
  return done;
}

void sqlite_connection::begin(prepared_handle& kept, const char* sql) {
  if (control(kept, sql) != SQLITE_OK) throw_last_error(db_.get(), sql);
}

void sqlite_connection::begin_write(std::stop_token cancel) {
  turn_ = queue_.acquire(busy_timeout_, cancel);
  try {
    begin(begin_write_, "begin immediate");
  } catch (...) {
    turn_.release();
    throw;
  }
  cancel_ = std::move(cancel);
  if (cancel_.stop_possible()) on_cancel_.emplace(cancel_, [db = db_.get()] { sqlite3_interrupt(db); });
}

void sqlite_connection::begin_read() {
  begin(begin_read_, "begin deferred");
  reading_ = true;
}

void sqlite_connection::end_transaction() noexcept {
  reading_ = false;
  savepoints_.clear();
  on_cancel_.reset();  // waits for a callback under way: nothing is interrupted after this line
  cancel_ = {};
}

void sqlite_connection::commit() {
  check_open();
  end_transaction();
  if (control(commit_, "commit") != SQLITE_OK) throw_commit_error(db_.get());
  turn_.announce();
  checkpoint_if_due();
  turn_.release();
}

// The commit has happened; a checkpoint that fails is tried again by a later commit.
void sqlite_connection::checkpoint_if_due() noexcept {
  if (!checkpoints_.due(pages_in_log_)) return;
  controlling_ = true;
  try {
    checkpoints_.run(db_.get(), pages_in_log_);
  } catch (const std::exception& e) {
    if_possible([&] { env_.log->write(log_level::warning, "checkpoint_failed", {{"error", e.what()}}); });
  }
  controlling_ = false;
}

void sqlite_connection::rollback() noexcept {
  end_transaction();
  if (sqlite3_get_autocommit(db_.get()) == 0) control(rollback_, "rollback");
  turn_.release();
}

// Some failures (a full disk, ON CONFLICT ROLLBACK) make SQLite end the transaction by itself. What came
// after would then commit alone, without the rest: refuse it.
void sqlite_connection::check_open() const {
  if (cancel_.stop_requested()) throw error(errc::cancelled, "stopped inside a transaction");
  if (sqlite3_get_autocommit(db_.get()) != 0)
    throw error(errc::transaction_lost, "SQLite has rolled the transaction back after an earlier failure");
}

void sqlite_connection::end_part() {
  check_open();
  savepoints_.end_part();
}

bool sqlite_connection::mark_parts() {
  check_open();
  savepoints_.end_part();
  begin(mark_, "savepoint settle_parts");
  return true;
}

bool sqlite_connection::drop_parts() noexcept {
  if (cancel_.stop_requested() || control(back_, "rollback to settle_parts") != SQLITE_OK) return false;
  savepoints_.end_part();
  return true;
}

// What the authorizer notices from here on belongs to the statement that is prepared next.
statements& sqlite_connection::noticing() {
  noticed_.reset();
  return statements_;
}

statements::prepared& sqlite_connection::allowed(statements::prepared& what) {
  check_open();
  if (noticed_) what.savepoint = std::exchange(noticed_, std::nullopt);
  if (what.savepoint) savepoints_.apply(*what.savepoint);
  if (reading_ && what.writes)
    throw error(errc::statement_failed,
                fmt::format("a read-only transaction cannot write: {}", sqlite3_sql(what.stmt.get())));
  return what;
}

template <class Run>
auto sqlite_connection::noting_savepoints(Run run) {
  try {
    auto done = run();
    savepoints_.confirm();
    return done;
  } catch (...) {
    savepoints_.forget_unconfirmed();
    throw;
  }
}

result sqlite_connection::execute(const query& text, std::span<const value> values) {
  auto& what = allowed(noticing().named(text));
  return noting_savepoints([&] { return statements_.run(what, values); });
}

result sqlite_connection::execute(std::string_view sql, std::span<const value> values) {
  auto& what = allowed(noticing().ad_hoc(sql));
  return noting_savepoints([&] { return statements_.run(what, values); });
}

std::vector<std::int64_t> sqlite_connection::execute_many(const query& text,
                                                          std::span<const parameters> rows) {
  auto& what = allowed(noticing().named(text));
  return noting_savepoints([&] { return statements_.run_many(what, rows); });
}

void sqlite_connection::execute_script(std::string_view sql) {
  check_open();
  if (sqlite3_exec(db_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw_last_error(db_.get(), "a script");
}

}  // namespace settle::inline v0::sqlite

#include "sqlite/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "settle/error.hpp"

namespace settle::inline v0::sqlite {
namespace {

// Pragmas that would change what a commit promises, or checkpoint behind our back.
constexpr const char* guarded_pragmas[] = {"journal_mode", "synchronous", "wal_autocheckpoint",
                                           "wal_checkpoint", "locking_mode"};

// Resets a statement when the call that used it ends, however it ends.
struct reset_at_end {
  sqlite3_stmt* stmt;
  ~reset_at_end() {
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
  }
};

value read_column(sqlite3_stmt* stmt, int column) {
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data),
                       static_cast<std::size_t>(sqlite3_column_bytes(stmt, column)));
  };
  switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(stmt, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(stmt, column);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(stmt, column));
    case SQLITE_BLOB: {
      const void* data = sqlite3_column_blob(stmt, column);
      return blob{data == nullptr ? std::string() : bytes(data)};
    }
    default:
      return nullptr;
  }
}

int bind_value(sqlite3_stmt* stmt, int index, const value& what) {
  struct binder {
    sqlite3_stmt* stmt;
    int index;
    int operator()(std::monostate) const { return sqlite3_bind_null(stmt, index); }
    int operator()(std::int64_t number) const { return sqlite3_bind_int64(stmt, index, number); }
    int operator()(double number) const { return sqlite3_bind_double(stmt, index, number); }
    int operator()(const std::string& text) const {
      return sqlite3_bind_text64(stmt, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(const blob& data) const {
      return sqlite3_bind_blob64(stmt, index, data.bytes.data(), data.bytes.size(), SQLITE_STATIC);
    }
  };
  return std::visit(binder{stmt, index}, what.variant());
}

int as_ms(duration d) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

}  // namespace

sqlite_connection::sqlite_connection(const std::string& path, write_queue& queue, checkpointer& checkpoints,
                                     duration busy_timeout, const environment& env)
    : env_(env),
      queue_(queue),
      checkpoints_(checkpoints),
      busy_timeout_(busy_timeout),
      db_(open_handle(path, as_ms(busy_timeout))) {
  sqlite3_set_authorizer(db_.get(), authorize, this);
  sqlite3_wal_hook(db_.get(), committed, this);
}

sqlite_connection::~sqlite_connection() { rollback(); }

// Refuses, when a statement is prepared, what would end the transaction or change its durability. Asked
// by SQLite itself, so that no spelling or comment gets past it.
int sqlite_connection::authorize(void* self, int action, const char* first, const char* second, const char*,
                                 const char*) {
  if (static_cast<sqlite_connection*>(self)->controlling_) return SQLITE_OK;
  if (action == SQLITE_TRANSACTION) return SQLITE_DENY;
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

void sqlite_connection::control(const char* sql) {
  controlling_ = true;
  const int done = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  controlling_ = false;
  if (done != SQLITE_OK) throw_last_error(db_.get(), sql);
}

void sqlite_connection::begin_write(std::stop_token cancel) {
  turn_ = queue_.acquire(busy_timeout_, cancel);
  try {
    control("begin immediate");
  } catch (...) {
    turn_.release();
    throw;
  }
  cancel_ = std::move(cancel);
  if (cancel_.stop_possible()) on_cancel_.emplace(cancel_, [db = db_.get()] { sqlite3_interrupt(db); });
}

void sqlite_connection::begin_read() {
  control("begin deferred");
  reading_ = true;
}

void sqlite_connection::end_transaction() noexcept {
  reading_ = false;
  on_cancel_.reset();  // waits for a callback under way: nothing is interrupted after this line
  cancel_ = {};
}

void sqlite_connection::commit() {
  check_open();
  end_transaction();
  controlling_ = true;
  const int done = sqlite3_exec(db_.get(), "commit", nullptr, nullptr, nullptr);
  controlling_ = false;
  if (done != SQLITE_OK) throw_commit_error(db_.get());
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
    env_.log->write(log_level::warning, "checkpoint_failed", {{"error", e.what()}});
  }
  controlling_ = false;
}

void sqlite_connection::rollback() noexcept {
  end_transaction();
  if (sqlite3_get_autocommit(db_.get()) == 0) {
    controlling_ = true;
    sqlite3_exec(db_.get(), "rollback", nullptr, nullptr, nullptr);
    controlling_ = false;
  }
  turn_.release();
}

// Some failures (a full disk, ON CONFLICT ROLLBACK) make SQLite end the transaction by itself. What came
// after would then commit alone, without the rest: refuse it.
void sqlite_connection::check_open() const {
  if (cancel_.stop_requested()) throw error(errc::cancelled, "stopped inside a transaction");
  if (sqlite3_get_autocommit(db_.get()) != 0)
    throw error(errc::transaction_lost, "SQLite has rolled the transaction back after an earlier failure");
}

sqlite_connection::prepared sqlite_connection::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int done = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, &rest);
  prepared made{prepared_handle(raw), {}, 0, false};
  if (done != SQLITE_OK) throw_last_error(db_.get(), fmt::format("preparing '{}'", sql));
  if (raw == nullptr) throw error(errc::statement_failed, "the statement is empty");
  const std::string_view tail(rest, static_cast<std::size_t>(sql.data() + sql.size() - rest));
  if (tail.find_first_not_of(" \t\r\n;") != std::string_view::npos)
    throw error(errc::statement_failed,
                fmt::format("one statement at a time; after the first comes '{}'", tail));
  made.writes = sqlite3_stmt_readonly(raw) == 0;
  const int count = sqlite3_bind_parameter_count(raw);
  for (int i = 1; i <= count; ++i) {
    const char* name = sqlite3_bind_parameter_name(raw, i);
    const std::string_view digits(name != nullptr ? name + 1 : "");
    int number = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failed != std::errc{} || end != digits.data() + digits.size() || number < 1)
      throw error(errc::statement_failed,
                  fmt::format("parameters are $1, $2, …, not '{}'", name != nullptr ? name : "?"));
    made.parameter.push_back(number);
    made.parameters = std::max(made.parameters, number);
  }
  return made;
}

sqlite_connection::prepared& sqlite_connection::cached(cache& in, std::string_view key,
                                                       std::string_view sql) {
  if (const auto found = in.find(key); found != in.end()) return found->second;
  return in.emplace(std::string(key), prepare(sql)).first->second;
}

void sqlite_connection::bind(prepared& what, std::span<const value> values) {
  if (static_cast<int>(values.size()) != what.parameters)
    throw error(errc::statement_failed,
                fmt::format("the statement has {} parameters, {} values were given: {}", what.parameters,
                            values.size(), sqlite3_sql(what.stmt.get())));
  for (std::size_t i = 0; i < what.parameter.size(); ++i) {
    const auto& given = values[static_cast<std::size_t>(what.parameter[i]) - 1];
    if (bind_value(what.stmt.get(), static_cast<int>(i) + 1, given) != SQLITE_OK)
      throw_last_error(db_.get(), "binding a parameter");
  }
}

result sqlite_connection::run_prepared(prepared& what, std::span<const value> values) {
  check_open();
  auto* stmt = what.stmt.get();
  if (reading_ && what.writes)
    throw error(errc::statement_failed,
                fmt::format("a read-only transaction cannot write: {}", sqlite3_sql(stmt)));
  const reset_at_end guard{stmt};
  bind(what, values);
  const int columns = sqlite3_column_count(stmt);
  std::vector<value> cells;
  const auto changed_before = sqlite3_total_changes64(db_.get());
  int step;
  while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
    for (int c = 0; c < columns; ++c) cells.push_back(read_column(stmt, c));
  if (step != SQLITE_DONE) throw_last_error(db_.get(), sqlite3_sql(stmt));
  // sqlite3_changes64 alone keeps the number of an earlier statement if this one changed nothing.
  const bool changed = sqlite3_total_changes64(db_.get()) != changed_before;
  return {std::move(cells), static_cast<std::size_t>(columns), changed ? sqlite3_changes64(db_.get()) : 0};
}

result sqlite_connection::execute(const query& text, std::span<const value> values) {
  return run_prepared(cached(named_, text.name, text.sqlite), values);
}

result sqlite_connection::execute(std::string_view sql, std::span<const value> values) {
  if (ad_hoc_.size() >= ad_hoc_max) ad_hoc_.clear();
  return run_prepared(cached(ad_hoc_, sql, sql), values);
}

std::vector<std::int64_t> sqlite_connection::execute_many(const query& text,
                                                          std::span<const parameters> rows) {
  auto& stmt = cached(named_, text.name, text.sqlite);
  std::vector<std::int64_t> affected;
  affected.reserve(rows.size());
  for (const auto& row : rows) affected.push_back(run_prepared(stmt, row).affected());
  return affected;
}

void sqlite_connection::execute_script(std::string_view sql) {
  check_open();
  if (sqlite3_exec(db_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw_last_error(db_.get(), "a script");
}

}  // namespace settle::sqlite

#include "sqlite/statements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "settle/error.hpp"

namespace settle::inline v0::sqlite {
namespace {

// Resets a statement when the call that used it ends, however it ends. What was bound stays bound, and may
// not exist any more: nothing looks at it, since every use binds everything first.
struct reset_at_end {
  sqlite3_stmt* stmt;
  ~reset_at_end() { sqlite3_reset(stmt); }
};

// Asks for the column once, not for each of its properties. No other thread uses the handle meanwhile, so
// the value needs no mutex.
void read_column(sqlite3_stmt* stmt, int column, std::vector<value>& into) {
  auto* const cell = sqlite3_column_value(stmt, column);
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_value_bytes(cell)));
  };
  switch (sqlite3_value_type(cell)) {
    case SQLITE_INTEGER:
      into.emplace_back(sqlite3_value_int64(cell));
      break;
    case SQLITE_FLOAT:
      into.emplace_back(sqlite3_value_double(cell));
      break;
    case SQLITE_TEXT:
      into.emplace_back(bytes(sqlite3_value_text(cell)));
      break;
    case SQLITE_BLOB: {
      const void* data = sqlite3_value_blob(cell);
      into.emplace_back(blob{data == nullptr ? std::string() : bytes(data)});
      break;
    }
    default:
      into.emplace_back();
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
    int operator()(const decimal& number) const { return (*this)(number.digits); }
    int operator()(const blob& data) const {
      return sqlite3_bind_blob64(stmt, index, data.bytes.data(), data.bytes.size(), SQLITE_STATIC);
    }
  };
  return std::visit(binder{stmt, index}, what.variant());
}

}  // namespace

statements::prepared& statements::ad_hoc(std::string_view sql) {
  if (ad_hoc_.size() >= ad_hoc_max) ad_hoc_.clear();
  return cached(ad_hoc_, sql, sql);
}

statements::prepared statements::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int done = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, &rest);
  prepared made{.stmt = prepared_handle(raw), .parameter = {}};
  if (done != SQLITE_OK) throw_last_error(db_, fmt::format("preparing '{}'", sql));
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

statements::prepared& statements::cached(cache& in, std::string_view key, std::string_view sql) {
  if (const auto found = in.find(key); found != in.end()) return found->second;
  return in.emplace(std::string(key), prepare(sql)).first->second;
}

void statements::bind(prepared& what, std::span<const value> values) {
  if (static_cast<int>(values.size()) != what.parameters)
    throw error(errc::statement_failed,
                fmt::format("the statement has {} parameters, {} values were given: {}", what.parameters,
                            values.size(), sqlite3_sql(what.stmt.get())));
  for (std::size_t i = 0; i < what.parameter.size(); ++i) {
    const auto& given = values[static_cast<std::size_t>(what.parameter[i]) - 1];
    if (bind_value(what.stmt.get(), static_cast<int>(i) + 1, given) != SQLITE_OK)
      throw_last_error(db_, "binding a parameter");
  }
}

result statements::run(prepared& what, std::span<const value> values) {
  auto* stmt = what.stmt.get();
  const reset_at_end guard{stmt};
  bind(what, values);
  const int columns = sqlite3_column_count(stmt);
  std::vector<value> cells;
  cells.reserve(what.cells);
  const auto changed_before = sqlite3_total_changes64(db_);
  int step;
  while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
    for (int c = 0; c < columns; ++c) read_column(stmt, c, cells);
  if (step != SQLITE_DONE) throw_last_error(db_, sqlite3_sql(stmt));
  what.cells = cells.size();
  // sqlite3_changes64 alone keeps the number of an earlier statement if this one changed nothing.
  const bool changed = sqlite3_total_changes64(db_) != changed_before;
  return {std::move(cells), static_cast<std::size_t>(columns), changed ? sqlite3_changes64(db_) : 0};
}

std::vector<std::int64_t> statements::run_many(prepared& what, std::span<const parameters> rows) {
  std::vector<std::int64_t> affected;
  affected.reserve(rows.size());
  for (const auto& row : rows) affected.push_back(run(what, row).affected());
  return affected;
}

}  // namespace settle::inline v0::sqlite

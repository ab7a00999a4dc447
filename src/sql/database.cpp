#include "settle/database.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "sql/handler_scope.hpp"

namespace settle::inline v0 {

namespace {

constexpr std::size_t kept_bytes_max = 200;   // of a statement
constexpr std::size_t shown_bytes_max = 100;  // of those, with every space and line break as one space

std::string shown(const char* statement) {
  if (statement == nullptr) return "the statement";
  std::string words;
  for (const char c : std::string_view(statement)) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space)
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  }
  while (words.ends_with(' ')) words.pop_back();
  const bool cut = words.size() > shown_bytes_max;
  return "'" + one_line(words, shown_bytes_max) + (cut ? "…'" : "'");
}

[[noreturn]] void refuse_column(const char* statement, std::size_t columns, std::size_t asked) {
  throw error(errc::unexpected_result, shown(statement) + " returns " + std::to_string(columns) +
                                           (columns == 1 ? " column" : " columns") + ", and column " +
                                           std::to_string(asked) + " was asked for; the first is 0");
}

[[noreturn]] void refuse_row(const char* statement, std::size_t rows, std::size_t columns,
                             std::size_t asked) {
  std::string why = shown(statement);
  if (columns == 0)
    why += " returns no rows, whatever it finds: write a select or a returning clause, or look at affected()";
  else if (rows == 0)
    why += " returned no row, and row " + std::to_string(asked) + " was asked for: look at empty() first";
  else
    why += " returned " + std::to_string(rows) + (rows == 1 ? " row" : " rows") + ", and row " +
           std::to_string(asked) + " was asked for; the first is 0";
  throw error(errc::unexpected_result, why);
}

}  // namespace

const value& result::row::operator[](std::size_t column) const {
  if (column >= columns_) refuse_column(statement_, columns_, column);
  return cells_[column];
}

std::size_t result::size() const {
  if (undecoded_) return undecoded_->size();
  return columns_ == 0 ? 0 : cells_.size() / columns_;
}

// Copied, because nobody promises how long the text lives. Statements of the library that return nothing are
// spared it: nobody asks them for rows.
void result::came_from(std::string_view statement) {
  const auto first = std::min(statement.find_first_not_of(" \n\t\r"), statement.size());
  const auto bytes = std::min(statement.size() - first, kept_bytes_max);
  auto kept = std::make_shared<char[]>(bytes + 1);
  std::copy_n(statement.data() + first, bytes, kept.get());
  statement_ = std::move(kept);
}

void result::came_from(std::span<const repeated> all, std::span<result> found) {
  std::size_t next = 0;
  for (const auto& one : all) {
    std::shared_ptr<const char[]> name;
    for (const auto end = std::min(next + one.rows.size(), found.size()); next < end; ++next) {
      if (found[next].columns_ == 0) continue;
      if (name)
        found[next].statement_ = name;
      else
        found[next].came_from(one.text.name);
      name = found[next].statement_;
    }
  }
}

void result::decode() const {
  if (!undecoded_) return;
  std::vector<value> cells;
  cells.reserve(undecoded_->size() * columns_);
  for (std::size_t row = 0; row < undecoded_->size(); ++row)
    for (std::size_t column = 0; column < columns_; ++column) cells.push_back(undecoded_->cell(row, column));
  cells_ = std::move(cells);
  undecoded_ = nullptr;
}

void result::check(std::size_t row_index) const {
  if (row_index >= size()) refuse_row(statement_.get(), size(), columns_, row_index);
}

void result::check(std::size_t row_index, std::size_t column) const {
  check(row_index);
  if (column >= columns_) refuse_column(statement_.get(), columns_, column);
}

value result::cell(std::size_t row_index, std::size_t column) const {
  check(row_index, column);
  return undecoded_ ? undecoded_->cell(row_index, column) : cells_[row_index * columns_ + column];
}

value result::take(std::size_t row_index, std::size_t column) {
  check(row_index, column);
  decode();
  return std::move(cells_[row_index * columns_ + column]);
}

result::row result::operator[](std::size_t index) const {
  check(index);
  decode();
  return {cells_.data() + index * columns_, columns_, statement_.get()};
}

transaction::transaction(std::unique_ptr<connection> on, const environment& env)
    : connection_(std::move(on)), env_(&env) {}

namespace {

connection& require(const std::unique_ptr<connection>& open) {
  if (!open) throw error(errc::transaction_lost, "the transaction has already ended");
  return *open;
}

}  // namespace

connection& transaction::use() {
  used_ = true;
  return require(connection_);
}

result transaction::execute(std::string_view sql, std::initializer_list<value> values) {
  auto found = use().execute(sql, {values.begin(), values.size()});
  found.came_from(sql);
  return found;
}

result transaction::execute(const query& text, std::initializer_list<value> values) {
  auto found = use().execute(text, {values.begin(), values.size()});
  if (found.columns_ > 0) found.came_from(text.name);
  return found;
}

result transaction::execute(const statement& what) {
  auto found = use().execute(what.text, what.values);
  if (found.columns_ > 0) found.came_from(what.text.name);
  return found;
}

std::vector<std::int64_t> transaction::execute_many(const query& text, std::span<const parameters> rows) {
  if (rows.empty()) return {};
  return use().execute_many(text, rows);
}

std::vector<result> transaction::execute_all(std::span<const repeated> all) {
  auto found = use().execute_all(all);
  result::came_from(all, found);
  return found;
}

// Where a statement costs no round trip.
std::vector<result> connection::execute_all(std::span<const repeated> all) {
  std::vector<result> results;
  for (const auto& [text, rows] : all)
    for (const auto& row : rows) results.push_back(execute(text, row));
  return results;
}

void transaction::post(const statement& what) { use().post(what.text, what.values); }

void transaction::post(const query& text, std::initializer_list<value> values) {
  use().post(text, {values.begin(), values.size()});
}

void transaction::wake_on_commit() { use().wake_on_commit(); }

transaction::transaction(transaction&&) noexcept = default;
transaction::~transaction() = default;

void transaction_parts::end(transaction& of) {
  require(of.connection_).end_part();
  of.used_ = false;
}

bool transaction_parts::drop(transaction& of) noexcept {
  if (of.used_ && !(of.connection_ && of.connection_->drop_part())) return false;
  of.used_ = false;
  return true;
}

bool transaction_parts::mark(transaction& of) { return require(of.connection_).mark_parts(); }

bool transaction_parts::drop_all(transaction& of) noexcept {
  if (!of.connection_ || !of.connection_->drop_parts()) return false;
  of.used_ = false;
  return true;
}

std::optional<cluster_identity> identity_of(const transaction& tx) {
  return require(tx.connection_).identity();
}

owned_transaction::owned_transaction(owned_transaction&&) noexcept = default;

owned_transaction::owned_transaction(std::unique_ptr<connection> on, database& home, const environment& env)
    : transaction(std::move(on), env), home_(&home) {}

owned_transaction::~owned_transaction() { rollback(); }

void owned_transaction::end(std::string_view effect, const std::function<void(connection&)>& how) {
  require(connection_);
  auto ending = std::move(connection_);
  try {
    if (effect.empty())
      how(*ending);
    else
      with_fault_points(*env_, effect, [&] { how(*ending); });
  } catch (...) {
    ending->rollback();
    home_->release(std::move(ending));
    throw;
  }
  home_->release(std::move(ending));
}

void owned_transaction::commit(std::string_view effect) {
  end(effect, [](connection& on) { on.commit(); });
}

result owned_transaction::commit_with(const statement& last, std::string_view effect) {
  const repeated once{last.text, {&last.values, 1}};
  return std::move(end_with({&once, 1}, true, effect).front());
}

std::vector<result> owned_transaction::commit_with(std::span<const repeated> last, std::string_view effect) {
  return end_with(last, false, effect);
}

std::vector<result> owned_transaction::end_with(std::span<const repeated> last, bool may_be_alone,
                                                std::string_view effect) {
  std::vector<result> found;
  end(effect, [&](connection& on) { found = on.execute_last(last, may_be_alone); });
  result::came_from(last, found);
  return found;
}

void owned_transaction::rollback() noexcept {
  if (!connection_) return;
  connection_->rollback();
  home_->release(std::move(connection_));
}

void owned_transaction::execute_script(std::string_view sql) { require(connection_).execute_script(sql); }

database::database(const environment& env) : env_(env) {}
database::~database() = default;

owned_transaction database::begin(std::stop_token cancel) {
  if (sql::handler_scope::covers(*this))
    throw error(errc::transaction_control,
                "a handler wants to begin a transaction on " + name() +
                    ", where it has one: what it committed there would stay when its message is tried again; "
                    "use the one that it was given, or, in a consumer, declare that it has effects outside");
  auto session = acquire(cancel);
  try {
    session->begin_write(std::move(cancel));
  } catch (...) {
    release(std::move(session));
    throw;
  }
  return {std::move(session), *this, env_};
}

owned_transaction database::read() {
  sql::handler_scope::note_read(*this);
  auto session = acquire({});
  try {
    session->begin_read();
  } catch (...) {
    release(std::move(session));
    throw;
  }
  return {std::move(session), *this, env_};
}

}  // namespace settle::inline v0

#include "settle/database.hpp"

#include <utility>

#include "base/check.hpp"
#include "settle/error.hpp"
#include "sql/handler_scope.hpp"

namespace settle::inline v0 {

const value& result::row::operator[](std::size_t column) const {
  SETTLE_CHECK(column < columns_, "a column of the result");
  return cells_[column];
}

std::size_t result::size() const {
  if (undecoded_) return undecoded_->size();
  return columns_ == 0 ? 0 : cells_.size() / columns_;
}

void result::decode() const {
  if (!undecoded_) return;
  const auto rows = std::exchange(undecoded_, nullptr);
  cells_.reserve(rows->size() * columns_);
  for (std::size_t row = 0; row < rows->size(); ++row)
    for (std::size_t column = 0; column < columns_; ++column) cells_.push_back(rows->cell(row, column));
}

value result::cell(std::size_t row_index, std::size_t column) const {
  SETTLE_CHECK(row_index < size() && column < columns_, "a cell of the result");
  return undecoded_ ? undecoded_->cell(row_index, column) : cells_[row_index * columns_ + column];
}

value result::take(std::size_t row_index, std::size_t column) {
  decode();
  return std::move(cells_.at(row_index * columns_ + column));
}

result::row result::operator[](std::size_t index) const {
  decode();
  SETTLE_CHECK(index < size(), "a row of the result");
  return {cells_.data() + index * columns_, columns_};
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
  return use().execute(sql, {values.begin(), values.size()});
}

result transaction::execute(const query& text, std::initializer_list<value> values) {
  return use().execute(text, {values.begin(), values.size()});
}

result transaction::execute(const statement& what) { return use().execute(what.text, what.values); }

std::vector<std::int64_t> transaction::execute_many(const query& text, std::span<const parameters> rows) {
  if (rows.empty()) return {};
  return use().execute_many(text, rows);
}

std::vector<result> transaction::execute_all(std::span<const repeated> all) { return use().execute_all(all); }

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

void transaction::end_part() {
  require(connection_).end_part();
  used_ = false;
}

bool transaction::drop_part() noexcept {
  if (used_ && !(connection_ && connection_->drop_part())) return false;
  used_ = false;
  return true;
}

std::optional<cluster_identity> transaction::identity() const { return require(connection_).identity(); }

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
  return found;
}

void owned_transaction::rollback() noexcept {
  if (!connection_) return;
  connection_->rollback();
  home_->release(std::move(connection_));
}

void owned_transaction::execute_script(std::string_view sql) { require(connection_).execute_script(sql); }

bool owned_transaction::mark_parts() { return require(connection_).mark_parts(); }

bool owned_transaction::drop_parts() noexcept {
  if (!connection_ || !connection_->drop_parts()) return false;
  used_ = false;
  return true;
}

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

// Settle's small SQL interface: a database, transactions on it, typed values.
//
//   auto db = settle::sqlite::open("orders.db");
//   settle::migrate(*db);
//
//   auto tx = db->begin();
//   tx.execute("insert into orders(id, total_cents) values ($1, $2)", {order_id, 4200});
//   settle::publish(tx, order_placed{order_id, 4200});   // the event commits with the row, or not at all
//   tx.commit();                                         // a transaction that is not committed rolls back
//
// Parameters are $1, $2, … on every database. Statement text never contains values.
//
// Threads: a database may be used by any number of threads; a transaction by one at a time.
// Errors: settle::error. A retryable one left nothing behind, unless it says outcome_unknown().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "settle/environment.hpp"
#include "settle/value.hpp"
#include "settle/wakeup.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

enum class dialect { sqlite, postgres };

// A statement with a name and a text per database, embedded from a .sql file at build time and
// prepared once per connection.
struct query {
  std::string_view name;
  std::string_view sqlite;
  std::string_view postgres;

  constexpr std::string_view text(dialect of) const { return of == dialect::sqlite ? sqlite : postgres; }
};

class connection;      // see settle/driver/database.hpp
class undecoded_rows;  // likewise
struct cluster_identity;
struct repeated;

// What a statement returned: rows, and how many rows it changed.
//
//   const auto found = tx.execute("select total_cents from orders where id = $1", {id});
//   if (found.empty()) return not_found();
//   const auto cents = found[0][0].integer();
//
// A row or a column that is not there is unexpected_result: the error names the statement, and a handler that
// runs into it has failed as poison.
class result {
 public:
  class row {
   public:
    row(const value* cells, std::size_t columns, const char* statement = nullptr)
        : cells_(cells), columns_(columns), statement_(statement) {}
    const value& operator[](std::size_t column) const;

   private:
    const value* cells_;
    std::size_t columns_;
    const char* statement_;
  };

  result() = default;
  result(std::vector<value> cells, std::size_t columns, std::int64_t affected)
      : cells_(std::move(cells)), columns_(columns), affected_(affected) {}
  // Decoded when a row is first looked at.
  result(std::shared_ptr<const undecoded_rows> rows, std::size_t columns, std::int64_t affected)
      : undecoded_(std::move(rows)), columns_(columns), affected_(affected) {}

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  row operator[](std::size_t index) const;
  std::int64_t affected() const { return affected_; }

  // One cell alone; the others stay as they came.
  value cell(std::size_t row_index, std::size_t column) const;

  // Moves a cell out, for payloads that should not be copied.
  value take(std::size_t row_index, std::size_t column);

 private:
  friend class transaction;
  friend class owned_transaction;
  void came_from(std::string_view statement);
  static void came_from(std::span<const repeated> all, std::span<result> found);
  void decode() const;
  void check(std::size_t row_index) const;
  void check(std::size_t row_index, std::size_t column) const;

  mutable std::vector<value> cells_;
  mutable std::shared_ptr<const undecoded_rows> undecoded_;
  std::shared_ptr<const char[]> statement_;  // its beginning, for errors; it stays where it is for the rows
  std::size_t columns_ = 0;
  std::int64_t affected_ = 0;
};

using parameters = std::vector<value>;

// A statement as plain data: for users who run it with their own driver and their own event loop.
struct statement {
  query text;
  parameters values;
};

// A statement that runs once for every row of parameters.
struct repeated {
  query text;
  std::span<const parameters> rows;
};

// What an event was caused by; events published in the same transaction inherit it.
struct origin {
  std::string correlation_id = {};
  std::string causation_id = {};
  std::string traceparent = {};
  std::string tracestate = {};
};

class database;

// An open transaction that somebody else commits. Handlers receive this type: they can read, write and
// publish, but they cannot commit, and BEGIN, COMMIT or ROLLBACK sent as SQL are refused. Savepoints are
// allowed.
class transaction {
 public:
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  result execute(std::string_view sql, std::initializer_list<value> values = {});
  result execute(const query& text, std::initializer_list<value> values = {});
  result execute(const statement& what);
  std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows);
  // Statements that do not need each other's answers, in order and in one round trip: a result for each row
  // of each of them.
  std::vector<result> execute_all(std::span<const repeated> all);

  // A statement whose result nobody needs. It costs no round trip of its own: it is sent with the next
  // statement or with the commit, in order, and its failure is thrown there and names it. On SQLite it
  // simply runs.
  void post(const statement& what);
  void post(const query& text, std::initializer_list<value> values = {});

  // After the commit, wakes whoever sleeps on database::watch(). Never inside the transaction: there a
  // notification would make all commits queue. Calls within a moment share one wake-up. On SQLite every
  // commit wakes by itself.
  void wake_on_commit();

  const environment& env() const { return *env_; }
  const origin& cause() const { return cause_; }
  void set_cause(origin cause) { cause_ = std::move(cause); }

 protected:
  transaction(std::unique_ptr<connection> on, const environment& env);
  transaction(transaction&&) noexcept;
  ~transaction();

  std::unique_ptr<connection> connection_;
  const environment* env_;
  origin cause_;

 private:
  friend class owned_transaction;
  friend class transaction_parts;
  friend std::optional<cluster_identity> identity_of(const transaction& tx);
  connection& use();  // every way to the database goes through it
  bool used_ = false;
};

// A transaction that its holder commits. Rolls back when it goes out of scope uncommitted.
class owned_transaction final : public transaction {
 public:
  owned_transaction(owned_transaction&&) noexcept;
  ~owned_transaction();

  // Durable when it returns. If it throws, the transaction is over; outcome_unknown() says whether
  // the commit may have happened all the same. `effect` names its two fault points.
  void commit(std::string_view effect = "commit");
  // The same with a last statement, in one round trip where that can be. One that is the whole transaction
  // runs at the isolation level that the server has for its user. A read has no effect to name: "".
  result commit_with(const statement& last, std::string_view effect = "commit");
  // The same with several, as execute_all has them, and at the level of every other transaction.
  std::vector<result> commit_with(std::span<const repeated> last, std::string_view effect = "commit");
  void rollback() noexcept;

  void execute_script(std::string_view sql);

 private:
  friend class database;
  owned_transaction(std::unique_ptr<connection> on, database& home, const environment& env);
  void end(std::string_view effect, const std::function<void(connection&)>& how);
  std::vector<result> end_with(std::span<const repeated> last, bool may_be_alone, std::string_view effect);

  database* home_;
};

class database {
 public:
  virtual ~database();

  // A read-write transaction. Waits at most busy_timeout for a free connection, and on SQLite for other
  // writers, both in order of arrival, then throws store_busy. `cancel` ends any wait in this transaction,
  // except that for the commit, with errc::cancelled.
  owned_transaction begin(std::stop_token cancel = {});

  // A read-only snapshot; neither waits for writers nor delays them.
  owned_transaction read();

  const environment& env() const { return env_; }
  virtual dialect speaks() const = 0;

  // A human name of this database for errors and logs (a path, or host and name; never a password).
  virtual std::string name() const = 0;

  // Something to wait on until anybody, in this process or another, has committed here: on SQLite
  // anything, elsewhere a transaction that asked for it with wake_on_commit(). Each caller gets its own.
  virtual std::unique_ptr<wakeup> watch() = 0;

 protected:
  explicit database(const environment& env);

  // Drivers hand out a connection from their pool, and get it back without a transaction.
  virtual std::unique_ptr<connection> acquire(const std::stop_token& cancel) = 0;
  virtual void release(std::unique_ptr<connection> idle) noexcept = 0;

 private:
  friend class owned_transaction;
  environment env_;
};

// Brings Settle's tables in this database up to date. Safe to call from any number of processes at
// once and at every start: the first one applies, the others wait and find nothing to do.
// Returns how many migrations were applied. Throws schema_newer if the database is ahead of this build.
int migrate(database& db);

}  // namespace settle::inline v0

#pragma GCC visibility pop

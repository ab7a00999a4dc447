// What Settle asks of a database driver, and what its own parts ask of a transaction beyond what users need.
// For those who write a driver; not stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "settle/database.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Rows as they came, for drivers where it costs something to make values of them: of a large result that is
// better done by whoever uses it, while the connection already serves the next statement.
class undecoded_rows {
 public:
  virtual ~undecoded_rows() = default;
  virtual std::size_t size() const = 0;
  virtual value cell(std::size_t row, std::size_t column) const = 0;
};

// Which server a session talks to, where that can change under a running program. After a failover or a
// restore the same address leads to another server or another history, and what was remembered of the old
// one (transaction ids, positions) means nothing there.
struct cluster_identity {
  std::int64_t system_identifier = 0;  // drawn when the cluster was created
  std::int64_t timeline = 0;           // grows with every promotion and every restore to a point in time
  bool in_recovery = false;            // a standby: readable only
  friend bool operator==(const cluster_identity&, const cluster_identity&) = default;
};

// The one that this transaction runs on; nothing on SQLite.
std::optional<cluster_identity> identity_of(const transaction& tx);

// One session with a database. Users work with transactions.
class connection {
 public:
  virtual ~connection() = default;

  virtual dialect speaks() const = 0;
  virtual void begin_write(std::stop_token cancel) = 0;  // waits for its turn, at most busy_timeout
  virtual void begin_read() = 0;                         // a consistent snapshot, never waits for writers
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;

  virtual result execute(const query& text, std::span<const value> values) = 0;
  virtual result execute(std::string_view sql, std::span<const value> values) = 0;

  // The last statements of a transaction, and the commit, in one round trip where that can be. One that is
  // the whole transaction needs no other if it `may_be_alone`.
  virtual std::vector<result> execute_last(std::span<const repeated> all, bool /*may_be_alone*/) {
    auto found = execute_all(all);
    commit();
    return found;
  }

  // Runs one statement for every row and returns how many rows each changed. The point of it is one
  // round trip, or one prepared statement, for all of them. A failing row fails the call.
  virtual std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows) = 0;

  // As transaction::execute_all.
  virtual std::vector<result> execute_all(std::span<const repeated> all);

  // Several statements separated by semicolons, without parameters. For migrations.
  virtual void execute_script(std::string_view sql) = 0;

  // As transaction::post and transaction::wake_on_commit. Where statements cost no round trip, and where
  // every commit wakes, there is nothing to save.
  virtual void post(const query& text, std::span<const value> values) { execute(text, values); }
  virtual void wake_on_commit() noexcept {}

  // As transaction_parts has them.
  virtual void end_part() {}
  virtual bool drop_part() noexcept { return false; }
  virtual bool mark_parts() { return false; }
  virtual bool drop_parts() noexcept { return false; }

  // The server as it was when the session began. Nothing if it cannot change, or cannot be found out.
  virtual std::optional<cluster_identity> identity() const { return std::nullopt; }

  // Whether the session, with no transaction open, may serve somebody else. Asked by the pool.
  virtual bool reusable() noexcept { return true; }
};

// For those who let several callers work in one transaction, one after the other: each of them is a part.
class transaction_parts {
 public:
  // After each of them. Throws transaction_lost if the transaction cannot commit any more (its last caller
  // has ignored an error), and puts the savepoints that were set so far out of reach of later callers. Costs
  // no round trip.
  static void end(transaction& of);

  // Instead of it, after a caller that has failed: takes back all that this one has asked of the database, if
  // none of it has been sent yet. So it is with callers that have asked nothing, and where statements are
  // sent together, with those that have posted only. False: nothing was done, and only a rollback helps.
  static bool drop(transaction& of) noexcept;

  // Before parts that may have to be taken back together, whatever they have done: drop_all() undoes all
  // since the mark, which stays. Not everywhere: false where it would cost more than to begin again, which is
  // on PostgreSQL, and from drop_all() where the transaction is lost.
  static bool mark(transaction& of);
  static bool drop_all(transaction& of) noexcept;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop

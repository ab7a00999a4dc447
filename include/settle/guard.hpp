// Guards: a declared state machine over a column of your own table. A repeated or late call changes nothing
// and says so; of two callers at the same time one moves the row.
//
//   const settle::guard orders({
//       .machine = "order",
//       .table = "orders",
//       .column = "status",
//       .states = {"NEW", "PAID", "SHIPPED", "CANCELLED"},
//       .initial = {"NEW"},
//       .ends = {"SHIPPED", "CANCELLED"},
//       .transitions = {{"NEW", "PAID", {"payments"}},
//                       {"PAID", "SHIPPED", {"warehouse"}},
//                       {"NEW", "CANCELLED"}},
//       .topic = "orders",
//   });
//
//   auto tx = db->begin();
//   const auto done = orders.move(tx, order_id, "PAID", {.actor = "payments", .reason = "charge ch_17"});
//   if (!done.in_place()) return problem(409, "the order is " + done.state);
//   tx.commit();
//
// What a move writes, it writes in your transaction: the row, a line of the history, and the event if there
// is to be one. They commit together or not at all. A move is one round trip; the event travels with your
// next statement or your commit.
//
// Concurrency: a move locks the row until the transaction ends, so its answer stays true until then. At READ
// COMMITTED, PostgreSQL's default, the second of two callers waits for the first and then sees what that one
// has made of the row. At REPEATABLE READ and SERIALIZABLE the database refuses it instead, with store_busy
// (retryable: begin the transaction anew). On SQLite writing transactions come one after the other.
//
// Names of tables and columns are quoted, so they are case-sensitive: on PostgreSQL write them in lower case
// unless they were created in quotes. The column may be text, varchar or an enum; the key an integer, a text
// or a uuid, and it must be unique.
//
// Threads: any number; a guard does not change. Errors: those of the store, and invalid_argument or
// invalid_name for what the caller should not have passed; all before anything is written, except what
// publish() refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/database.hpp"
#include "settle/event.hpp"
#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct transition {
  std::string from;
  std::string to;
  // Who may: names of actors and of roles. Empty: everybody.
  std::vector<std::string> who = {};
};

// A move that was made, as the history keeps it.
struct guard_step {
  std::string machine;
  std::string entity;  // the row's key as text
  std::string from;
  std::string to;
  std::string actor;
  std::string reason;
  timestamp at{};
  std::optional<event_id> event = std::nullopt;
};

struct guard_options {
  // The machine's name in history and events, 1–100 bytes.
  std::string machine;
  // Your table, "orders" or "shop.orders".
  std::string table;
  // The column that identifies a row.
  std::string key = "id";
  // The column that holds the state.
  std::string column = "state";
  // Every state, each 1–100 bytes.
  std::vector<std::string> states;
  // Those that rows are created with. Every other one must be reachable from them.
  std::vector<std::string> initial;
  // Those that nothing leads out of. Every other one must have a way out.
  std::vector<std::string> ends = {};
  std::vector<transition> transitions;
  // Where each move is published: type "<machine>.<to>", key the row's key, and a JSON object of machine, id,
  // from, to, actor, reason and at. Empty: nowhere.
  std::string topic = {};
  // Makes the event instead, if it is to look otherwise. If it throws, or its event is refused, the row has
  // not moved, also if you catch that and commit.
  std::function<event(const guard_step&)> make_event = {};
};

// Another column of the row that a move sets.
struct assignment {
  std::string column;
  value to;
};

struct move_options {
  // Who asks, at most 255 bytes; a transition may name him, or a role of his.
  std::string actor = {};
  std::vector<std::string> roles = {};
  // Why, for the history; at most 1,000 bytes.
  std::string reason = {};
  // Columns to set along with the state, at most 32. Constants of your program: each set of columns is a
  // statement that sessions keep prepared.
  std::vector<assignment> set = {};
};

enum class move_outcome {
  moved,      // by this call
  unchanged,  // it was there already: nothing was written
  conflict,   // no transition leads from where it is to where it should go
  missing,    // there is no such row
  forbidden,  // there is a transition, but not for this actor
};
std::string_view to_string(move_outcome of);

struct move_result {
  move_outcome outcome = move_outcome::missing;
  std::string state = {};  // as it is now; empty if there is no row, or if its column is null
  std::string from = {};   // as it was, if this call has moved it
  std::optional<event_id> event = std::nullopt;

  // The row is where it should be, by this call or before.
  bool in_place() const { return outcome == move_outcome::moved || outcome == move_outcome::unchanged; }
};

struct guard_report {
  struct line {
    std::string state;  // empty: null
    std::int64_t rows = 0;
  };
  std::vector<line> undeclared = {};  // the most frequent first, at most 100

  bool clean() const { return undeclared.empty(); }
};

class guard {
 public:
  // Throws invalid_argument, naming all that is wrong: states that are not declared or declared twice, that
  // nothing leads to or nothing leads out of, transitions that are there twice or lead nowhere; invalid_name
  // for names that cannot be one.
  explicit guard(guard_options options);

  // In the caller's transaction. `to` must be declared.
  move_result move(transaction& tx, const value& key, std::string_view to,
                   const move_options& options = {}) const;

  // Reads the whole column once, so call it at start: throws invalid_argument if the table or a column is not
  // there or, on PostgreSQL, is of a type that does not know a declared state (an enum without it),
  // schema_missing before migrate(), and counts rows in states that are not declared. It writes nothing: that
  // a constraint or a length refuses a state is found by the first move to it.
  guard_report check(database& db) const;

  // What was done to a row, oldest first, at most so many.
  std::vector<guard_step> history(transaction& tx, const value& key, std::size_t at_most = 100) const;

  // The machine as a Mermaid state diagram.
  std::string mermaid() const;

  const guard_options& options() const;

 private:
  struct parts;
  std::shared_ptr<const parts> parts_;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop

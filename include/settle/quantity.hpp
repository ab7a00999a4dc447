// Atomic quantities: stock, seats, credits in a column of your own table, which no number of callers takes
// below its minimum.
//
//   const settle::quantity stock({
//       .resource = "stock", .table = "products", .key = "sku", .column = "in_stock"});
//
//   auto tx = db->begin();
//   const auto got = stock.take(tx, "sku-1", 2, {.reason = "sold", .reference = order_id});
//   if (!got) return problem(409, "only " + std::to_string(got.there) + " left");
//   tx.commit();
//
// Every change is made in your transaction, together with a line of quantity_log: resource, item, change,
// what there is afterwards, reason, reference, time. They commit together or not at all, so the log always
// adds up.
//
// A reservation takes for the time being. Its id is yours, so that a repeated call is harmless:
//
//   stock.reserve(tx, cart_id, {{"sku-1", 2}, {"sku-2", 1}}, 15min);   // all of it or nothing
//   …
//   if (stock.confirm(tx, cart_id).status == settle::reservation_status::expired) …
//
// A reservation_expiry in the background gives back what nobody has confirmed in time. Confirming, cancelling
// and expiring are decided by the reservation's row: one of them happens, once.
//
// Concurrency: a change locks the item's row until the transaction ends; the second of two callers waits for
// the first. A call with several items locks them in one order, whatever order they are given in, so two
// baskets do not deadlock; call it once per transaction, and write keys the same way everywhere. At
// REPEATABLE READ and SERIALIZABLE PostgreSQL refuses the second caller with store_busy (retryable: begin the
// transaction anew). A take of one item is one round trip, one of several is two.
//
// A take or an add is not repeatable by itself: repeat the transaction only if it is known not to have
// committed, or run it under settle::once or a consumer. Reservations may be repeated at any time.
//
// The column must be an integer (smallint, integer or bigint on PostgreSQL); null counts as missing. Names
// are quoted, so they are case-sensitive. Keys are integers or texts (uuids among them), and unique.
//
// Threads: any number; a quantity does not change. Errors: those of the store (constraint_violated also for a
// change that a trigger suppresses), invalid_argument and invalid_name for what the caller should not have
// passed; nothing is written then.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "settle/database.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct quantity_options {
  // Its name in the log, 1–100 bytes. Reservations of one resource share their ids.
  std::string resource;
  // Your table, "products" or "shop.products".
  std::string table;
  // The column that identifies an item.
  std::string key = "id";
  // The column that is counted.
  std::string column = "quantity";
  // Nothing is taken below this.
  std::int64_t minimum = 0;
  // Nothing is added above this. For a column of type integer say 2'147'483'647.
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

struct quantity_line {
  value item;
  std::int64_t amount = 0;  // at least 1
};

// For the log.
struct quantity_note {
  std::string reason = {};     // at most 1,000 bytes
  std::string reference = {};  // what it is for, at most 255 bytes
};

struct quantity_limits {
  static constexpr std::size_t lines_max = 1000;  // of one call
  static constexpr std::size_t id_bytes_max = 255;
};

enum class take_outcome { taken, insufficient, missing };
std::string_view to_string(take_outcome of);

struct take_result {
  take_outcome outcome = take_outcome::missing;
  std::int64_t there = 0;  // what there is now: after it was taken, or too little

  explicit operator bool() const { return outcome == take_outcome::taken; }
};

struct basket_result {
  // missing if any item is, else insufficient if there is too little of any. Then nothing was taken.
  take_outcome outcome = take_outcome::missing;
  // For each line, as they were given: what became of it, or would have alone.
  std::vector<take_result> lines = {};

  explicit operator bool() const { return outcome == take_outcome::taken; }
};

enum class add_outcome { added, excessive, missing };  // excessive: it would be above the maximum
std::string_view to_string(add_outcome of);

struct add_result {
  add_outcome outcome = add_outcome::missing;
  std::int64_t there = 0;

  explicit operator bool() const { return outcome == add_outcome::added; }
};

enum class reservation_status { missing, held, confirmed, cancelled, expired };
std::string_view to_string(reservation_status of);

enum class reserve_outcome {
  reserved,      // by this call, or before by the same id and lines
  insufficient,  // nothing was taken and nothing remembered: the same id may be tried again
  missing,       // likewise
  mismatch,      // the id is that of a reservation with other lines
  ended,         // it was made before, and has been cancelled or has expired
};
std::string_view to_string(reserve_outcome of);

struct reserve_result {
  reserve_outcome outcome = reserve_outcome::missing;
  reservation_status status = reservation_status::missing;
  bool repeated = false;  // it was there already, and this call has taken nothing
  timestamp expires_at{};
  std::vector<take_result> lines = {};  // as in basket_result; empty if repeated

  explicit operator bool() const { return outcome == reserve_outcome::reserved; }
};

struct reservation_end {
  reservation_status status = reservation_status::missing;  // as it is now
  bool by_this_call = false;                                // false: it was so before
};

class quantity {
 public:
  // Throws invalid_argument or invalid_name.
  explicit quantity(quantity_options options);

  take_result take(transaction& tx, const value& item, std::int64_t amount,
                   const quantity_note& note = {}) const;
  add_result add(transaction& tx, const value& item, std::int64_t amount,
                 const quantity_note& note = {}) const;

  // All of it or nothing. An item that is there twice counts as one line with the sum; one whose key
  // is written in two ways (a uuid in capitals and not) is refused with invalid_argument.
  basket_result take_all(transaction& tx, std::span<const quantity_line> lines,
                         const quantity_note& note = {}) const;
  basket_result take_all(transaction& tx, std::initializer_list<quantity_line> lines,
                         const quantity_note& note = {}) const {
    return take_all(tx, std::span(lines.begin(), lines.size()), note);
  }

  // Takes all of it or nothing, until it is confirmed or `for_long` has passed. The log's reference is the
  // id.
  reserve_result reserve(transaction& tx, std::string_view id, std::span<const quantity_line> lines,
                         duration for_long, std::string_view reason = "reserved") const;
  reserve_result reserve(transaction& tx, std::string_view id, std::initializer_list<quantity_line> lines,
                         duration for_long, std::string_view reason = "reserved") const {
    return reserve(tx, id, std::span(lines.begin(), lines.size()), for_long, reason);
  }

  // What was reserved stays taken. Says `confirmed`, also if it was so before; `expired` once its time has
  // passed, whether or not it has been given back yet; `cancelled` or `missing`.
  reservation_end confirm(transaction& tx, std::string_view id) const;

  // Gives it back. Says `cancelled`, also if it was so before; `expired` if it has been given back already;
  // `confirmed` if it is too late; `missing`.
  reservation_end cancel(transaction& tx, std::string_view id, std::string_view reason = "cancelled") const;

  // Gives back what nobody has confirmed in time, in one transaction: at most so many reservations, oldest
  // first. Returns how many. Those that somebody else is ending are left to him. One that cannot be given
  // back (a constraint of yours refuses it, or a transaction keeps an item of it locked) is logged, kept, and
  // tried again a minute later, and the others get a transaction each; where an item is gone, or the maximum
  // would be exceeded, its line of the log says so with a change of zero. Safe from any number of nodes.
  std::size_t release_expired(database& db, std::size_t at_most = 100, std::stop_token cancel = {}) const;

  // Forgets reservations that ended before this, at most so many. From then on their ids are new. Returns how
  // many.
  std::size_t forget_ended(database& db, timestamp before, std::size_t at_most = 1000) const;

  // Throws invalid_argument if the table or a column is not there or the column is no integer, schema_missing
  // before migrate(). Returns how many rows are below the minimum. Reads the whole column once: for the
  // start.
  std::int64_t check(database& db) const;

  const quantity_options& options() const;

 private:
  friend class reservation_expiry;
  struct engine;
  std::shared_ptr<const engine> engine_;
};

struct reservation_expiry_options {
  // How long to sleep when nothing is due: about how late something may be given back.
  duration poll = std::chrono::seconds(1);
  std::size_t batch = 100;
  // How long an ended reservation is remembered, so that a late repetition of its call is harmless.
  duration keep_ended = std::chrono::hours(24 * 30);
};

// Gives back what has expired, in the background: settle::background loop(expiry).
class reservation_expiry final : public service {
 public:
  reservation_expiry(database& db, quantity of, const reservation_expiry_options& options = {});
  ~reservation_expiry() override;

  // One batch. False when nothing is due.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return name_; }
  const environment& env() const override;
  wakeup& arrivals() override { return *timer_; }
  duration idle_wait() const override { return options_.poll; }

 private:
  database& db_;
  quantity of_;
  reservation_expiry_options options_;
  std::string name_;
  std::unique_ptr<wakeup> timer_;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop

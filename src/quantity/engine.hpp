// The statements of one counted column, and what every change is made of.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantity/plan.hpp"
#include "settle/error.hpp"
#include "settle/quantity.hpp"
#include "sql/own_table.hpp"
#include "sql/undo_point.hpp"

namespace settle::inline v0 {

struct quantity::engine {
  explicit engine(quantity_options given);

  // A change of one item, if what there is afterwards lies between the bounds.
  struct one_change {
    std::optional<std::int64_t> there;  // before; empty: no such item
    std::optional<std::int64_t> after;  // empty: nothing was changed
  };
  struct bounds {
    std::int64_t low;
    std::int64_t high;
  };
  one_change change_one(transaction& tx, const value& item, std::int64_t change, bounds within,
                        const quantity_note& note) const;

  // Runs `first`, if there is any, and then locks the items in their order, all in one round trip. A
  // reservation's own row is always locked before its items: its calls must not deadlock.
  std::vector<result> lock(transaction& tx, std::span<const quantities::demand> items,
                           std::span<const statement> first = {}) const;
  // What the locked rows say. Refuses two spellings of one key: each of them would be given the same amount.
  struct locked {
    std::vector<std::optional<std::int64_t>> there;
    std::vector<std::string> names;  // keys as the database writes them
  };
  locked read_locked(std::span<const result> rows, std::span<const quantities::demand> items) const;

  // The changes, their log, and what else belongs to them, in one round trip. Whether all of it was changed
  // is known afterwards only: the caller undoes the rest, see sql::whole().
  struct log_line {
    std::string item;
    std::int64_t change = 0;
    std::int64_t after = 0;
    std::string reason;
    std::string reference;
  };
  struct item_change {
    value key;
    std::int64_t change = 0;
  };
  void apply(transaction& tx, std::span<const item_change> changes, std::span<const log_line> log,
             std::span<const repeated> more = {}) const;

  basket_result take_all(transaction& tx, std::span<const quantity_line> lines,
                         const quantity_note& note) const;

  reserve_result reserve(transaction& tx, const std::string& id, std::span<const quantity_line> lines,
                         duration for_long, const std::string& reason) const;
  reserve_result repeated_reserve(transaction& tx, const std::string& id, const result& found,
                                  std::span<const quantities::demand> wanted) const;
  reservation_end confirm(transaction& tx, const std::string& id) const;
  reservation_end cancel(transaction& tx, const std::string& id, const std::string& reason) const;

  std::vector<quantities::demand> lines_of(const result& rows) const;
  // Ends these reservations, whose rows are locked, and gives back what they hold.
  struct ending {
    std::string id;
    std::vector<quantities::demand> lines;
  };
  void give_back(transaction& tx, std::span<const ending> all, std::string_view status,
                 const std::string& reason) const;
  void tell_trouble(const environment& env, const quantities::returned& one) const;

  std::size_t release(owned_transaction in, const statement& due, std::chrono::milliseconds wait) const;
  std::size_t release_one_by_one(database& db, std::size_t at_most, const std::stop_token& cancel) const;
  std::vector<ending> read_endings(transaction& tx, const std::vector<std::string>& ids) const;
  void postpone(database& db, const std::string& id, duration by) const;
  struct not_released {
    std::string id;
    error why;
  };
  void tell_not_released(const environment& env, std::span<const not_released> all) const;
  void tell_held_up(const environment& env, std::span<const not_released> all) const;

  [[noreturn]] void refuse(const std::string& why) const;
  std::int64_t amount_in(const value& cell) const;
  void check_unchanged_by_trigger(std::int64_t affected, const value& key) const;
  void check_note(const quantity_note& note) const;
  void count(const environment& env, std::string_view name, std::string_view outcome) const;

  quantity_options options;
  sql::filled_query change_one_query, lock_item, change_item, probe, count_below;
};

}  // namespace settle::inline v0

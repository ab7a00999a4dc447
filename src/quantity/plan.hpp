// What is to be changed, and whether it can be. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/quantity.hpp"

namespace settle::quantities {

// What is wanted of one item.
struct demand {
  std::string item;  // its key as text: what demands are sorted by, and logged under
  value key;
  std::int64_t amount = 0;

  friend bool operator==(const demand& left, const demand& right) {
    return left.item == right.item && left.amount == right.amount;
  }
};

// One demand per item, in the order in which everybody locks. Throws invalid_argument for amounts below one,
// for sums that overflow, for no lines or too many, and what sql::key_text throws.
std::vector<demand> demands_of(std::span<const quantity_line> lines);

// What there is after the change, if that lies between the bounds.
std::optional<std::int64_t> changed(std::int64_t there, std::int64_t change, std::int64_t low,
                                    std::int64_t high);

// `there` is empty for a missing item.
take_result judge_take(std::optional<std::int64_t> there, std::int64_t amount, std::int64_t minimum);

// Of all demands: whether all can be met, and if so what there is afterwards, else what there is.
struct basket {
  take_outcome outcome = take_outcome::taken;
  std::map<std::string, take_result> items;
};
basket judge_basket(std::span<const demand> all, std::span<const std::optional<std::int64_t>> there,
                    std::int64_t minimum);

// How a reservation goes on when it is to be confirmed or cancelled.
reservation_status status_of(std::string_view stored, timestamp expires_at, timestamp now);

// What reservations give back, and the log of it.
struct returned {
  std::string reservation;
  demand what;
  std::int64_t change = 0;  // zero: it cannot be
  std::int64_t after = 0;
  std::string_view trouble = {};
};
// In the order given. `there` has an entry for each item; empty for one that is missing.
void plan_returns(std::span<returned> all, std::map<std::string, std::optional<std::int64_t>> there,
                  std::int64_t maximum);
// What changes per item; in parts, should the sum overflow.
std::vector<std::pair<std::string, std::int64_t>> sums_of(std::span<const returned> all);

}  // namespace settle::quantities

#include "quantity/plan.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "settle/error.hpp"
#include "sql/own_table.hpp"

namespace settle::quantities {

std::vector<demand> demands_of(std::span<const quantity_line> lines) {
  if (lines.empty() || lines.size() > quantity_limits::lines_max)
    throw error(errc::invalid_argument,
                fmt::format("{} lines, it must be 1 to {}", lines.size(), quantity_limits::lines_max));
  std::map<std::string, demand> merged;
  for (const auto& [key, amount] : lines) {
    auto item = sql::key_text(key, "the key of an item");
    if (amount < 1)
      throw error(errc::invalid_argument,
                  fmt::format("the amount of item {} is {}, it must be at least 1", item, amount));
    auto& one = merged.try_emplace(item, demand{item, key, 0}).first->second;
    if (__builtin_add_overflow(one.amount, amount, &one.amount))
      throw error(errc::invalid_argument, fmt::format("the amounts of item {} overflow", item));
  }
  std::vector<demand> all;
  for (auto& [unused, one] : merged) all.push_back(std::move(one));
  return all;
}

std::optional<std::int64_t> changed(std::int64_t there, std::int64_t change, std::int64_t low,
                                    std::int64_t high) {
  std::int64_t after = 0;
  if (__builtin_add_overflow(there, change, &after) || after < low || after > high) return std::nullopt;
  return after;
}

take_result judge_take(std::optional<std::int64_t> there, std::int64_t amount, std::int64_t minimum) {
  if (!there) return {take_outcome::missing, 0};
  const auto after = changed(*there, -amount, minimum, std::numeric_limits<std::int64_t>::max());
  return after ? take_result{take_outcome::taken, *after} : take_result{take_outcome::insufficient, *there};
}

basket judge_basket(std::span<const demand> all, std::span<const std::optional<std::int64_t>> there,
                    std::int64_t minimum) {
  SETTLE_CHECK(all.size() == there.size(), "an answer for every item");
  basket judged;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto one = judge_take(there[i], all[i].amount, minimum);
    judged.items[all[i].item] = one;
    judged.outcome = std::max(judged.outcome, one.outcome);
  }
  if (judged.outcome == take_outcome::taken) return judged;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (auto& one = judged.items[all[i].item]; one) one.there = *there[i];
  return judged;
}

reservation_status status_of(std::string_view stored, timestamp expires_at, timestamp now) {
  if (stored == "CONFIRMED") return reservation_status::confirmed;
  if (stored == "CANCELLED") return reservation_status::cancelled;
  if (stored == "EXPIRED") return reservation_status::expired;
  return expires_at <= now ? reservation_status::expired : reservation_status::held;
}

void plan_returns(std::span<returned> all, std::map<std::string, std::optional<std::int64_t>> there,
                  std::int64_t maximum) {
  for (auto& one : all) {
    auto& amount = there[one.what.item];
    if (!amount) {
      one.trouble = "there is no such item";
      continue;
    }
    one.after = *amount;
    const auto after = changed(*amount, one.what.amount, std::numeric_limits<std::int64_t>::min(), maximum);
    if (!after) {
      one.trouble = "it would be above the maximum";
      continue;
    }
    one.change = one.what.amount;
    one.after = *after;
    amount = after;
  }
}

std::vector<std::pair<std::string, std::int64_t>> sums_of(std::span<const returned> all) {
  std::map<std::string, std::int64_t> sums;
  std::vector<std::pair<std::string, std::int64_t>> parts;
  for (const auto& one : all) {
    if (one.change == 0) continue;
    auto& sum = sums[one.what.item];
    std::int64_t next = 0;
    if (__builtin_add_overflow(sum, one.change, &next)) {
      parts.emplace_back(one.what.item, sum);
      next = one.change;
    }
    sum = next;
  }
  parts.insert(parts.end(), sums.begin(), sums.end());
  return parts;
}

}  // namespace settle::quantities

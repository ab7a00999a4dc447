#include "quantity/plan.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace settle::quantities {
namespace {

constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();
using amounts = std::vector<std::optional<std::int64_t>>;

// Proves G5
TEST(quantity_plan, items_are_merged_and_sorted_whatever_their_order) {
  const std::vector<quantity_line> lines{{"b", 1}, {9, 5}, {"a", 2}, {10, 1}, {"b", 3}};
  const auto all = demands_of(lines);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], (demand{"10", 10, 1}));
  EXPECT_EQ(all[1], (demand{"9", 9, 5}));
  EXPECT_EQ(all[2], (demand{"a", "a", 2}));
  EXPECT_EQ(all[3], (demand{"b", "b", 4}));
}

// Proves G5
TEST(quantity_plan, amounts_that_are_none_or_overflow_are_refused) {
  const auto code = [](const std::vector<quantity_line>& lines) {
    return test::code_of([&] { demands_of(lines); });
  };
  EXPECT_EQ(code({}), errc::invalid_argument);
  EXPECT_EQ(code({{"a", 0}}), errc::invalid_argument);
  EXPECT_EQ(code({{"a", -1}}), errc::invalid_argument);
  EXPECT_EQ(code({{"a", lowest}}), errc::invalid_argument);
  EXPECT_EQ(code({{"a", highest}, {"a", 1}}), errc::invalid_argument);
  EXPECT_EQ(code({{value(), 1}}), errc::invalid_argument);
  EXPECT_EQ(code({{"a", highest}}), std::nullopt);
  EXPECT_EQ(code(std::vector<quantity_line>(1001, {"a", 1})), errc::invalid_argument);
}

// Proves G5
TEST(quantity_plan, nothing_leaves_its_bounds_and_nothing_overflows) {
  EXPECT_EQ(changed(5, -5, 0, highest), 0);
  EXPECT_EQ(changed(5, -6, 0, highest), std::nullopt);
  EXPECT_EQ(changed(5, -6, -1, highest), -1);
  EXPECT_EQ(changed(highest, 1, lowest, highest), std::nullopt);
  EXPECT_EQ(changed(lowest, -1, lowest, highest), std::nullopt);
  EXPECT_EQ(changed(9, 1, lowest, 10), 10);
  EXPECT_EQ(changed(10, 1, lowest, 10), std::nullopt);
  EXPECT_EQ(judge_take(std::nullopt, 1, 0).outcome, take_outcome::missing);
  EXPECT_EQ(judge_take(lowest, highest, lowest).outcome, take_outcome::insufficient);
  EXPECT_EQ(judge_take(-3, 1, 0).there, -3);
}

// Proves G5
TEST(quantity_plan, a_basket_is_taken_whole_or_told_what_is_there) {
  const std::vector<demand> two{{"a", "a", 2}, {"b", "b", 3}};
  auto judged = judge_basket(two, amounts{5, 3}, 0);
  EXPECT_EQ(judged.outcome, take_outcome::taken);
  EXPECT_EQ(judged.items["a"].there, 3);
  EXPECT_EQ(judged.items["b"].there, 0);

  judged = judge_basket(two, amounts{5, 2}, 0);
  EXPECT_EQ(judged.outcome, take_outcome::insufficient);
  EXPECT_EQ(judged.items["a"].there, 5);
  EXPECT_EQ(judged.items["a"].outcome, take_outcome::taken);
  EXPECT_EQ(judged.items["b"].there, 2);

  judged = judge_basket(two, amounts{std::nullopt, 2}, 0);
  EXPECT_EQ(judged.outcome, take_outcome::missing);
}

// Proves G5
TEST(quantity_plan, what_can_be_given_back_is_and_the_rest_says_why) {
  std::vector<returned> all(4);
  all[0].what = {"a", "a", 2};
  all[1].what = {"a", "a", 7};
  all[2].what = {"gone", "gone", 1};
  all[3].what = {"a", "a", 1};
  plan_returns(all, {{"a", 5}, {"gone", std::nullopt}}, 8);
  EXPECT_EQ(all[0].change, 2);
  EXPECT_EQ(all[0].after, 7);
  EXPECT_EQ(all[1].change, 0);
  EXPECT_EQ(all[1].after, 7);
  EXPECT_EQ(all[1].trouble, "it would be above the maximum");
  EXPECT_EQ(all[2].trouble, "there is no such item");
  EXPECT_EQ(all[3].after, 8);
  EXPECT_EQ(sums_of(all), (std::vector<std::pair<std::string, std::int64_t>>{{"a", 3}}));
}

TEST(quantity_plan, sums_that_overflow_are_made_in_parts) {
  std::vector<returned> all(2);
  all[0].what = all[1].what = {"a", "a", highest};
  plan_returns(all, {{"a", lowest}}, highest);
  EXPECT_EQ(all[1].after, highest - 1);
  EXPECT_EQ(sums_of(all),
            (std::vector<std::pair<std::string, std::int64_t>>{{"a", highest}, {"a", highest}}));
}

// Proves G5
TEST(quantity_plan, a_reservation_expires_by_its_time_and_ends_by_its_row) {
  const timestamp now(std::chrono::seconds(100));
  EXPECT_EQ(status_of("HELD", now + duration(1), now), reservation_status::held);
  EXPECT_EQ(status_of("HELD", now, now), reservation_status::expired);
  EXPECT_EQ(status_of("CONFIRMED", now, now), reservation_status::confirmed);
  EXPECT_EQ(status_of("CANCELLED", now + duration(1), now), reservation_status::cancelled);
  EXPECT_EQ(status_of("EXPIRED", now + duration(1), now), reservation_status::expired);
}

}  // namespace
}  // namespace settle::quantities

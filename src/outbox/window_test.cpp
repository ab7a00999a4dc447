#include "outbox/window.hpp"

#include <gtest/gtest.h>

#include "outbox/lanes.hpp"

namespace settle::outbox {
namespace {

const publish_result confirmed{};
const publish_result down{publish_status::destination_failed, "down"};
const publish_result rejected{publish_status::message_rejected, "too strange"};

constexpr cursor nothing_read_yet = at_number(-1);

// On SQLite a cursor is a number.
std::map<int, cursor> numbers(const std::map<int, std::int64_t>& by_share) {
  std::map<int, cursor> out;
  for (const auto& [share, number] : by_share) out[share] = at_number(number);
  return out;
}

std::optional<share_group> next(const std::map<int, std::int64_t>& reached, std::int64_t head,
                                const cursor& previous) {
  return next_group(numbers(reached), at_number(head), previous);
}

share_group group(std::int64_t from, std::uint32_t mask) { return {at_number(from), mask}; }

window_outcome judge_all(const share_group& of, std::int64_t end, const std::vector<window_row>& rows,
                         const std::vector<fate>& fates) {
  return judge(of, {at_number(end), 0, rows, fates});
}

message of_key(const std::string& key, const std::string& topic = "t") {
  message m;
  m.topic = topic;
  m.key = key;
  return m;
}

TEST(outbox_window, nobody_is_behind_when_every_share_has_reached_the_tick) {
  EXPECT_EQ(next({{0, 10}, {1, 12}}, 10, nothing_read_yet), std::nullopt);
  EXPECT_EQ(next({}, 10, nothing_read_yet), std::nullopt);
}

TEST(outbox_window, shares_at_one_position_are_read_together) {
  EXPECT_EQ(next({{0, 5}, {3, 5}, {15, 5}}, 9, nothing_read_yet), (group(5, 1U << 0 | 1U << 3 | 1U << 15)));
}

TEST(outbox_window, at_first_the_shares_furthest_behind_are_read) {
  EXPECT_EQ(next({{0, 7}, {1, 4}, {2, 9}, {3, 4}}, 9, nothing_read_yet), (group(4, 1U << 1 | 1U << 3)));
}

// Proves O3: one share with a long way to go, or one that fails, does not keep the others waiting
TEST(outbox_window, groups_take_turns_and_begin_again_after_the_last) {
  const std::map<int, std::int64_t> scanned{{0, 7}, {1, 4}, {2, 6}};
  EXPECT_EQ(next(scanned, 9, at_number(4)), (group(6, 1U << 2)));
  EXPECT_EQ(next(scanned, 9, at_number(6)), (group(7, 1U << 0)));
  EXPECT_EQ(next(scanned, 9, at_number(7)), (group(4, 1U << 1)));
}

TEST(outbox_window, a_share_at_the_tick_does_not_join_a_group) {
  EXPECT_EQ(next({{0, 9}, {1, 8}}, 9, nothing_read_yet), (group(8, 1U << 1)));
  EXPECT_EQ(next({{0, 9}, {1, 8}}, 9, at_number(8)), (group(8, 1U << 1)));
}

TEST(outbox_window, everything_that_fits_moves_to_the_tick_itself) {
  const std::vector<measured_row> rows{{11, 10}, {14, 10}};
  EXPECT_EQ(window_end(rows, 500, 1000, 20), 20);
  EXPECT_EQ(window_end({}, 500, 1000, 20), 20);
}

TEST(outbox_window, a_full_set_of_rows_ends_at_its_last_row) {
  const std::vector<measured_row> rows{{11, 1}, {14, 1}, {17, 1}};
  EXPECT_EQ(window_end(rows, 3, 1000, 20), 17);
}

TEST(outbox_window, a_batch_ends_before_the_row_that_would_make_it_too_large) {
  const std::vector<measured_row> rows{{11, 400}, {14, 400}, {17, 400}};
  EXPECT_EQ(window_end(rows, 500, 1000, 20), 14);
  EXPECT_EQ(window_end(rows, 3, 1000, 20), 14);
}

TEST(outbox_window, exactly_the_allowed_bytes_still_fit) {
  const std::vector<measured_row> rows{{11, 500}, {14, 500}};
  EXPECT_EQ(window_end(rows, 500, 1000, 20), 20);
}

TEST(outbox_window, a_single_row_larger_than_a_batch_goes_alone) {
  const std::vector<measured_row> rows{{11, 5000}, {14, 1}};
  EXPECT_EQ(window_end(rows, 500, 1000, 20), 11);
  const std::vector<measured_row> alone{{11, 5000}};
  EXPECT_EQ(window_end(alone, 500, 1000, 20), 20);
}

// Proves O3
TEST(outbox_window, when_all_is_confirmed_every_share_of_the_group_moves_to_the_end) {
  const auto outcome =
      judge_all(group(10, 0b111), 20, {{11, 0}, {12, 2}}, {fate::confirmed, fate::confirmed});
  EXPECT_EQ(outcome.reached, numbers({{0, 20}, {1, 20}, {2, 20}}));
  EXPECT_TRUE(outcome.stopped.empty());
  EXPECT_TRUE(outcome.to_hold.empty());
  EXPECT_EQ(outcome.confirmed, 2);
}

// Proves O4
TEST(outbox_window, a_share_stops_before_its_first_row_of_unknown_fate) {
  const auto outcome = judge_all(group(10, 0b1), 20, {{11, 0}, {12, 0}, {13, 0}},
                                 {fate::confirmed, fate::unknown, fate::confirmed});
  EXPECT_EQ(outcome.reached.at(0), at_number(11));
  EXPECT_EQ(outcome.stopped.at(0), 1u);
  EXPECT_EQ(outcome.confirmed, 1) << "13 is confirmed, but it will be sent again behind 12";
}

// Proves O3, O4
TEST(outbox_window, one_share_that_stops_does_not_hold_back_the_others) {
  const auto outcome = judge_all(group(10, 0b11), 20, {{11, 0}, {12, 1}, {13, 0}, {14, 1}},
                                 {fate::confirmed, fate::unknown, fate::confirmed, fate::confirmed});
  EXPECT_EQ(outcome.reached, numbers({{0, 20}, {1, 11}}));
  EXPECT_EQ(outcome.confirmed, 2);
}

// Proves O3
TEST(outbox_window, what_is_rejected_behind_or_delayed_is_held_and_stops_nobody) {
  const auto outcome = judge_all(group(10, 0b1), 20, {{11, 0}, {12, 0}, {13, 0}, {14, 0}},
                                 {fate::rejected, fate::behind, fate::delayed, fate::confirmed});
  EXPECT_EQ(outcome.reached.at(0), at_number(20));
  EXPECT_EQ(outcome.to_hold, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(outcome.confirmed, 1);
}

TEST(outbox_window, behind_the_row_at_which_a_share_stops_nothing_is_held_yet) {
  const auto outcome = judge_all(group(10, 0b1), 20, {{11, 0}, {12, 0}}, {fate::unknown, fate::rejected});
  EXPECT_EQ(outcome.reached.at(0), at_number(10));
  EXPECT_TRUE(outcome.to_hold.empty()) << "it will be met again";
}

// Where numbers are not committed in order, a share that stops stays in its window. Proves O4
TEST(outbox_window, a_share_that_stops_keeps_both_ticks_of_its_window) {
  const std::vector<window_row> rows{{11, 0}, {12, 1}};
  const std::vector<fate> fates{fate::confirmed, fate::unknown};
  const auto outcome =
      judge({{.tick = 7, .upto = 0, .seq = 0}, 0b11}, {{.tick = 9, .upto = 0, .seq = 0}, 9, rows, fates});
  EXPECT_EQ(outcome.reached.at(0), (cursor{9, 0, 0}));
  EXPECT_EQ(outcome.reached.at(1), (cursor{7, 9, 11}));
  EXPECT_LT(outcome.reached.at(1), (cursor{9, 0, 0})) << "it is still behind";
}

// Proves O4
TEST(message_fates, of_a_topic_that_nobody_takes_are_unwanted_or_behind_unless_they_may_be_stored) {
  const publish_result unwanted{publish_status::topic_unavailable, "nobody listens"};
  const std::vector<message> sent{of_key("a"), of_key("a"), of_key(""), of_key(""), of_key("a")};
  EXPECT_EQ(fates_of(sent, std::vector{unwanted, unwanted, unwanted, unwanted, down}),
            (std::vector{fate::unwanted, fate::behind, fate::unwanted, fate::unwanted, fate::unknown}));
}

// Proves O4
TEST(message_fates, of_a_rejected_key_only_the_first_message_is_charged) {
  const std::vector<message> sent{of_key("a"), of_key("b"), of_key("a"), of_key("a")};
  EXPECT_EQ(fates_of(sent, std::vector{rejected, confirmed, rejected, down}),
            (std::vector{fate::rejected, fate::confirmed, fate::behind, fate::behind}));
}

// Proves O4
TEST(message_fates, of_the_same_key_on_another_topic_are_their_own) {
  const std::vector<message> sent{of_key("a"), of_key("a", "u"), of_key("a"), of_key("a", "u")};
  EXPECT_EQ(fates_of(sent, std::vector{rejected, confirmed, down, rejected}),
            (std::vector{fate::rejected, fate::confirmed, fate::behind, fate::rejected}));
}

TEST(message_fates, behind_a_failure_of_the_destination_nothing_is_known_of_the_key) {
  const std::vector<message> sent{of_key("a"), of_key("a"), of_key("b")};
  EXPECT_EQ(fates_of(sent, std::vector{down, rejected, rejected}),
            (std::vector{fate::unknown, fate::unknown, fate::rejected}));
}

TEST(message_fates, messages_without_a_key_have_nothing_to_do_with_each_other) {
  const std::vector<message> sent{of_key(""), of_key(""), of_key("")};
  EXPECT_EQ(fates_of(sent, std::vector{rejected, down, rejected}),
            (std::vector{fate::rejected, fate::unknown, fate::rejected}));
}

TEST(message_fates_death, a_publisher_that_forgets_a_result_is_a_bug_that_stops_the_process) {
  const std::vector<message> sent{of_key("a"), of_key("b")};
  EXPECT_DEATH(fates_of(sent, std::vector{confirmed}), "one result per message");
}

TEST(outbox_lanes, a_key_keeps_its_lane_for_ever) {
  EXPECT_EQ(lane_of("order-42", "any"), 59);
  EXPECT_EQ(lane_of("order-42", "other"), 59);
  EXPECT_EQ(lane_of("a", ""), 202);
}

TEST(outbox_lanes, an_event_without_a_key_spreads_by_its_id) {
  EXPECT_EQ(lane_of("", "order-42"), 59);
  EXPECT_EQ(lane_of("", "a"), 202);
}

}  // namespace
}  // namespace settle::outbox

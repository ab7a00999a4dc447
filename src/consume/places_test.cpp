#include "consume/places.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

delivery numbered(std::string_view sequence) {
  delivery from;
  from.content.id = "1";
  from.content.source = "shop";
  if (!sequence.empty()) from.content.extensions["sequence"] = sequence;
  return from;
}

// Proves C10
TEST(places, are_the_numbers_of_relays_whatever_the_broker_says) {
  auto from = numbered("120");
  from.at = log_position::of(7);
  EXPECT_EQ(place_of(from, "things/0").order, "c120");
  EXPECT_EQ(place_of(from, "things/0").source, "shop");
}

// Proves C10
TEST(places, of_messages_without_a_number_are_their_positions_in_the_brokers_log) {
  auto from = numbered("");
  from.at = log_position::of(7);
  EXPECT_EQ(place_of(from, "things/0").order, "a7");
  EXPECT_EQ(place_of(from, "things/0").source, "things/0");
  from.at = log_position("\x01\xff");
  EXPECT_EQ(place_of(from, "things/0").order, "01ff") << "bytes that are no number sort as their digits do";
}

// Proves C10
TEST(places, are_unknown_where_neither_relay_nor_broker_says_one) {
  EXPECT_EQ(place_of(numbered(""), "").order, "");
  EXPECT_EQ(place_of(numbered("not a number"), "").order, "");
}

// Proves C10
TEST(places, sort_as_first_deliveries_come) {
  EXPECT_LT(place_of(numbered("9"), "").order, place_of(numbered("10"), "").order);
  EXPECT_LT(place_of(numbered("10"), "").order, place_of(numbered("9999999999"), "").order);
}

// Proves C10
TEST(places, are_what_the_relay_says_where_the_number_does_not_tell) {
  auto from = numbered("120");
  from.content.extensions["settleplace"] = "a3c120";
  EXPECT_EQ(place_of(from, "things/0").order, "a3c120");
}

// Proves C10
TEST(places, of_two_databases_with_one_source_are_told_apart) {
  auto from = numbered("120");
  from.content.extensions["settledatabase"] = "db-1";
  EXPECT_EQ(place_of(from, "things/0").source, "db-1");
}

TEST(places, take_no_negative_number_for_a_sequence) {
  auto from = numbered("-1");
  from.at = log_position::of(7);
  EXPECT_EQ(place_of(from, "things/0").order, "a7");
}

TEST(places, are_in_the_lane_of_the_messages_key) {
  auto from = numbered("1");
  from.content.key = "order-1";
  EXPECT_EQ(place_of(from, "").lane, lane_of("order-1", "1"));
  EXPECT_EQ(place_of(numbered("1"), "").lane, lane_of("", "1"));
}

using lanes = std::vector<std::pair<int, std::string_view>>;

// Proves C10
TEST(highest_places, are_kept_for_each_lane) {
  highest_places found;
  found.add(3, "b");
  found.add(7, "a");
  found.add(3, "c");
  found.add(7, "A");
  EXPECT_EQ(std::move(found).take(), (lanes{{3, "c"}, {7, "a"}}));
}

TEST(highest_places, have_room_for_every_lane) {
  highest_places found;
  for (int lane = 0; lane < lane_count; ++lane) found.add(lane, "a");
  for (int lane = 0; lane < lane_count; ++lane) found.add(lane, "b");
  const auto all = std::move(found).take();
  ASSERT_EQ(all.size(), 256u);
  EXPECT_EQ(all.back(), (std::pair<int, std::string_view>{255, "b"}));
}

TEST(batch_places, of_nothing_are_none) { EXPECT_TRUE(batch_places().take().empty()); }

// Proves C6, C10
TEST(batch_places, have_the_highest_position_of_each_log) {
  const place at{"shop", 1, "a"};
  batch_places found;
  found.add("orders/1", log_position::of(5), at);
  found.add("orders/2", log_position::of(9), at);
  found.add("orders/1", log_position::of(7), at);
  found.add("orders/1", log_position::of(6), at);
  const auto logs = found.take();
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].log, "orders/1");
  EXPECT_EQ(logs[0].position, log_position::of(7).bytes());
  EXPECT_EQ(logs[1].position, log_position::of(9).bytes());
}

// Proves C10
TEST(batch_places, have_the_highest_place_of_each_source_and_lane) {
  const std::vector<place> at{{"shop", 1, "b"}, {"till", 1, "z"}, {"shop", 1, "a"}, {"shop", 2, "a"}};
  batch_places found;
  for (const auto& one : at) found.add("orders/1", log_position::of(1), one);
  const auto logs = found.take();
  ASSERT_EQ(logs.size(), 1u);
  ASSERT_EQ(logs[0].sources.size(), 2u);
  EXPECT_EQ(logs[0].sources[0].source, "shop");
  EXPECT_EQ(logs[0].sources[0].highest, (lanes{{1, "b"}, {2, "a"}}));
  EXPECT_EQ(logs[0].sources[1].highest, (lanes{{1, "z"}}));
}

TEST(batch_places, of_logs_that_take_turns_are_put_together) {
  const place first{"shop", 1, "a"}, second{"shop", 1, "b"}, other{"shop", 1, "z"};
  batch_places found;
  found.add("orders/1", log_position::of(1), first);
  found.add("orders/2", log_position::of(1), other);
  found.add("orders/1", log_position::of(2), second);
  const auto logs = found.take();
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].sources[0].highest, (lanes{{1, "b"}}));
  EXPECT_EQ(logs[1].sources[0].highest, (lanes{{1, "z"}}));
}

TEST(batch_places, remember_a_log_whose_messages_have_no_place) {
  batch_places found;
  const place unknown{"orders/1", 0, ""};
  found.add("orders/1", log_position::of(5), unknown);
  const auto logs = found.take();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_TRUE(logs[0].sources[0].highest.empty());
}

}  // namespace
}  // namespace settle::consume

#include "consume/retention.hpp"

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

}  // namespace
}  // namespace settle::consume

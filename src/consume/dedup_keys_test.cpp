#include "consume/dedup_keys.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace settle::consume {
namespace {

using names = std::vector<std::string_view>;

struct dedup : ::testing::Test {
  fence_keeper fences{"c", std::chrono::seconds(1)};
  std::deque<work> messages;

  dedup() { fences.assign({3, 1, "orders/3"}, "owner"); }

  work& add(std::string id, std::string key = "", std::string type = "placed") {
    auto& one = messages.emplace_back();
    one.content.content.id = std::move(id);
    one.content.content.key = std::move(key);
    one.content.content.type = std::move(type);
    one.content.content.topic = "orders";
    one.content.tag.partition = 3;
    one.content.at = log_position::of(12);
    return one;
  }
  dedup_keys keys(dedup_key by) {
    std::vector<work*> all;
    for (auto& one : messages) all.push_back(&one);
    return dedup_keys_of(all, by, fences);
  }
  static std::optional<errc> why_unfit(work& one, dedup_key by = dedup_key::message_id) {
    const auto why = find_unfit(one, by);
    return why ? std::optional(why->code()) : std::nullopt;
  }
};

// Proves C2
TEST_F(dedup, goes_by_the_messages_own_id) {
  add("m1");
  add("m2", "order-1");
  const auto found = keys(dedup_key::message_id);
  EXPECT_EQ(found.all, (names{"m1", "m2"}));
  EXPECT_EQ(found.all[0].data(), messages[0].what().id.data()) << "not a copy";
}

// Proves C2
TEST_F(dedup, goes_by_aggregate_and_type_where_asked) {
  add("m1", "order-1");
  add("m2", "order-1", "paid");
  add("m3", "order-2");
  EXPECT_EQ(keys(dedup_key::aggregate_and_type).all,
            (names{"order-1-placed", "order-1-paid", "order-2-placed"}));
}

// Proves C2
TEST_F(dedup, of_a_message_without_an_id_goes_by_its_place) {
  add("", "order-1");
  EXPECT_EQ(keys(dedup_key::message_id).all, (names{"no id: orders/3/12"}));
  add("m2");
  EXPECT_EQ(keys(dedup_key::aggregate_and_type).all[1], "no id: orders/3/12") << "it has no aggregate";
}

// Proves C2
TEST_F(dedup, of_messages_without_id_and_place_goes_by_what_they_say) {
  for (const auto* payload : {"1", "2", "1"}) {
    auto& one = add("");
    one.content.at = {};
    one.content.content.payload = payload;
  }
  const auto found = keys(dedup_key::message_id);
  EXPECT_NE(found.all[0], found.all[1]) << "the second would be skipped as a copy of the first, and lost";
  EXPECT_EQ(found.all[0], found.all[2]);
}

TEST_F(dedup, keys_stay_valid_when_they_are_moved) {
  for (int i = 0; i < 100; ++i) add("m", "k" + std::to_string(i));
  auto found = keys(dedup_key::aggregate_and_type);
  const auto moved = std::move(found);
  EXPECT_EQ(moved.all[0], "k0-placed");
  EXPECT_EQ(moved.all[99], "k99-placed");
}

// Proves C2
TEST_F(dedup, needs_an_id_or_an_aggregate) {
  EXPECT_EQ(why_unfit(add("m1")), std::nullopt);
  EXPECT_EQ(why_unfit(add("")), errc::message_id_missing);
  EXPECT_EQ(why_unfit(add("m1"), dedup_key::aggregate_and_type), errc::message_id_missing);
  EXPECT_EQ(why_unfit(add("", "order-1"), dedup_key::aggregate_and_type), std::nullopt);
}

TEST_F(dedup, needs_names_that_every_database_can_hold) {
  EXPECT_EQ(why_unfit(add("m\xff")), errc::decode_failed);
  EXPECT_EQ(why_unfit(add(std::string("m\0", 2))), errc::decode_failed);
  EXPECT_EQ(why_unfit(add(std::string(1024, 'm'))), std::nullopt);
  EXPECT_EQ(why_unfit(add(std::string(1025, 'm'))), errc::decode_failed);
  EXPECT_EQ(why_unfit(add("m", std::string(1025, 'k'))), errc::decode_failed);
}

TEST_F(dedup, of_a_message_whose_names_were_changed_goes_by_its_place_and_it_stays_unfit) {
  auto& one = add("m\xff");
  why_unfit(one);
  EXPECT_TRUE(one.unfit);
  EXPECT_EQ(one.what().id, "m\xef\xbf\xbd") << "it can be stored now";
  EXPECT_EQ(why_unfit(one), errc::decode_failed);
  EXPECT_EQ(keys(dedup_key::message_id).all, (names{"no id: orders/3/12"}));
}

}  // namespace
}  // namespace settle::consume

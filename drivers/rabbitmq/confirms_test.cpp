#include "rabbitmq/confirms.hpp"

#include <gtest/gtest.h>

namespace settle::rabbitmq {
namespace {

confirms sent(std::uint64_t first, int count) {
  confirms made(first);
  for (int i = 0; i < count; ++i) made.sent();
  return made;
}

std::string states(const confirms& of) {
  std::string all;
  for (std::size_t i = 0; i < of.count(); ++i)
    all += of.is_confirmed(i) ? 'c' : of.is_returned(i) ? 'r' : of.is_refused(i) ? 'n' : '?';
  return all;
}

TEST(rabbitmq_confirms, come_one_by_one_or_for_many_and_in_any_order) {
  auto batch = sent(11, 5);
  EXPECT_EQ(batch.next_number(), 16u);
  batch.take({.number = 14});
  EXPECT_EQ(states(batch), "???c?");
  batch.take({.number = 12, .and_all_before = true});
  EXPECT_EQ(states(batch), "cc?c?");
  EXPECT_FALSE(batch.complete());
  batch.take({.number = 15, .and_all_before = true});
  EXPECT_EQ(states(batch), "ccccc");
  EXPECT_TRUE(batch.complete());
}

TEST(rabbitmq_confirms, of_a_returned_message_are_none) {
  auto batch = sent(1, 3);
  batch.take_return(2);
  EXPECT_FALSE(batch.is_returned(1)) << "its confirmation is to come";
  batch.take({.number = 3, .and_all_before = true});
  EXPECT_EQ(states(batch), "crc");
  EXPECT_TRUE(batch.complete());
}

TEST(rabbitmq_confirms, that_are_refusals_stay_refusals) {
  auto batch = sent(1, 3);
  batch.take({.number = 2, .positive = false});
  batch.take({.number = 3, .and_all_before = true});
  EXPECT_EQ(states(batch), "cnc");
}

TEST(rabbitmq_confirms, of_other_batches_mean_nothing) {
  auto batch = sent(11, 2);
  batch.take({.number = 10, .and_all_before = true});
  batch.take({.number = 13, .and_all_before = true});
  batch.take_return(3);
  batch.take_return(13);
  EXPECT_EQ(states(batch), "??");
  EXPECT_FALSE(batch.complete());
}

TEST(rabbitmq_confirms, an_empty_batch_is_complete) { EXPECT_TRUE(sent(1, 0).complete()); }

// Proves O4
TEST(rabbitmq_confirms, behind_a_failure_nothing_of_its_topic_and_key_counts_as_confirmed) {
  const auto made = [](std::string topic, std::string key) {
    message one;
    one.topic = std::move(topic);
    one.key = std::move(key);
    return one;
  };
  const std::vector<message> batch{made("t", "a"), made("t", "a"), made("t", "b"), made("u", "a"),
                                   made("t", ""),  made("t", ""),  made("t", "a")};
  std::vector<publish_result> results(batch.size());
  results[1].status = publish_status::destination_failed;
  results[4].status = publish_status::destination_failed;
  hold_back_later_ones(batch, results);
  std::string all;
  for (const auto& one : results) all += one.status == publish_status::confirmed ? 'c' : 'f';
  EXPECT_EQ(all, "cfccfcf");
}

}  // namespace
}  // namespace settle::rabbitmq

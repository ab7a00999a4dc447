#include "consume/inbox.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

const timestamp now{1'000s};

delivery make(const std::string& id, const std::string& key, std::uint32_t partition = 0,
              const std::string& topic = "orders") {
  delivery made;
  made.content.id = id;
  made.content.key = key;
  made.content.topic = topic;
  made.tag.partition = partition;
  return made;
}

std::vector<std::string> ids(const std::vector<held_message*>& batch) {
  std::vector<std::string> out;
  for (const auto* one : batch) out.push_back(one->content.content.id);
  return out;
}

using names = std::vector<std::string>;

TEST(inbox, an_empty_one_has_nothing_to_run) {
  inbox in;
  EXPECT_TRUE(in.next_batch(10, now).empty());
  EXPECT_EQ(in.size(), 0u);
}

// Proves O4
TEST(inbox, messages_run_in_the_order_of_arrival) {
  inbox in;
  in.add({make("1", "a"), make("2", "b")});
  in.add({make("3", "a")});
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"1", "2", "3"}));
}

TEST(inbox, a_batch_holds_no_more_than_asked_for) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  EXPECT_EQ(ids(in.next_batch(2, now)), (names{"1", "2"}));
  EXPECT_TRUE(in.next_batch(0, now).empty());
}

TEST(inbox, asking_for_a_batch_takes_nothing_out) {
  inbox in;
  in.add({make("1", "a")});
  in.next_batch(1, now);
  EXPECT_EQ(ids(in.next_batch(1, now)), (names{"1"}));
}

TEST(inbox, what_is_finished_is_gone_and_the_rest_stays_valid) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  const auto batch = in.next_batch(3, now);
  const std::vector<held_message*> done{batch[0], batch[2]};
  in.finished(done);
  EXPECT_EQ(in.size(), 1u);
  EXPECT_EQ(batch[1]->content.content.id, "2");
  EXPECT_EQ(ids(in.next_batch(3, now)), (names{"2"}));
}

// Proves O4
TEST(inbox, a_failed_message_holds_back_its_key_and_no_other) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "a"), make("4", "b")});
  in.failed(*in.next_batch(1, now)[0], now + 1s);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2", "4"}));
}

TEST(inbox, the_same_key_on_another_topic_is_another_key) {
  inbox in;
  in.add({make("1", "a"), make("2", "a", 0, "payments")});
  in.failed(*in.next_batch(1, now)[0], now + 1s);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2"}));
}

TEST(inbox, a_failed_message_without_a_key_holds_back_nobody) {
  inbox in;
  in.add({make("1", ""), make("2", ""), make("3", "a")});
  in.failed(*in.next_batch(1, now)[0], now + 1s);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2", "3"}));
}

TEST(inbox, a_failed_message_runs_alone_when_its_time_has_come) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "a")});
  in.failed(*in.next_batch(1, now)[0], now + 1s);
  EXPECT_EQ(ids(in.next_batch(10, now + 1s - 1us)), (names{"2"}));
  EXPECT_EQ(ids(in.next_batch(10, now + 1s)), (names{"1"}));
}

TEST(inbox, messages_that_arrived_before_a_retry_that_is_due_run_first_and_without_it) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  in.failed(*in.next_batch(2, now)[1], now);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"1"}));
  in.finished(in.next_batch(10, now));
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2"}));
}

TEST(inbox, after_the_retry_its_key_goes_on_in_order) {
  inbox in;
  in.add({make("1", "a"), make("2", "a"), make("3", "a")});
  in.failed(*in.next_batch(1, now)[0], now);
  in.finished(in.next_batch(10, now));
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2", "3"}));
}

TEST(inbox, two_failed_messages_are_retried_one_at_a_time) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  const auto batch = in.next_batch(2, now);
  in.failed(*batch[0], now);
  in.failed(*batch[1], now);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"1"}));
}

TEST(inbox, failures_are_counted) {
  inbox in;
  in.add({make("1", "a")});
  auto* one = in.next_batch(1, now)[0];
  in.failed(*one, now + 1s);
  in.failed(*one, now + 4s);
  EXPECT_EQ(one->failures, 2);
  EXPECT_EQ(one->retry_at, now + 4s);
}

// Proves C4
TEST(inbox, revoked_partitions_are_forgotten_and_others_kept) {
  inbox in;
  in.add({make("1", "a", 1), make("2", "b", 2), make("3", "c", 3), make("4", "d", 1)});
  const std::vector<std::uint32_t> gone{1, 3};
  in.revoke(gone);
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"2"}));
  in.revoke({});
  EXPECT_EQ(in.size(), 1u);
}

TEST(inbox, a_revoked_failure_stops_holding_back_its_key) {
  inbox in;
  in.add({make("1", "a", 1)});
  in.failed(*in.next_batch(1, now)[0], now + 1s);
  in.revoke(std::vector<std::uint32_t>{1});
  in.add({make("1", "a", 1), make("2", "a", 1)});
  EXPECT_EQ(ids(in.next_batch(10, now)), (names{"1", "2"}));
}

TEST(inbox, waiting_counts_what_failed_and_has_not_succeeded_since) {
  inbox in;
  in.add({make("1", "a"), make("2", "b")});
  EXPECT_EQ(in.waiting(), 0u);
  in.failed(*in.next_batch(1, now)[0], now);
  EXPECT_EQ(in.waiting(), 1u);
  in.finished(in.next_batch(1, now));
  EXPECT_EQ(in.waiting(), 0u);
}

TEST(inbox, the_next_retry_is_the_earliest_one) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  EXPECT_EQ(in.next_retry(now + 9s), now + 9s);
  const auto batch = in.next_batch(2, now);
  in.failed(*batch[0], now + 5s);
  in.failed(*batch[1], now + 3s);
  EXPECT_EQ(in.next_retry(now + 9s), now + 3s);
  EXPECT_EQ(in.next_retry(now + 1s), now + 1s);
}

TEST(same_key, needs_a_key_and_the_same_topic) {
  const auto a = make("1", "a").content;
  EXPECT_TRUE(same_key(a, make("2", "a").content));
  EXPECT_FALSE(same_key(a, make("2", "b").content));
  EXPECT_FALSE(same_key(a, make("2", "a", 0, "payments").content));
  EXPECT_FALSE(same_key(make("1", "").content, make("2", "").content));
}

}  // namespace
}  // namespace settle::consume

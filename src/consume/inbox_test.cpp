#include "consume/inbox.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

constexpr timestamp noon{1'000'000s};

bool together(const message&) { return false; }
bool is_alone(const message& m) { return m.id == "alone"; }

delivery make(const std::string& id, const std::string& key, std::uint32_t partition = 0,
              const std::string& topic = "orders") {
  delivery made;
  made.content.id = id;
  made.content.key = key;
  made.content.topic = topic;
  made.tag.partition = partition;
  return made;
}

std::vector<std::string> ids(const std::vector<work*>& batch) {
  std::vector<std::string> out;
  for (const auto* one : batch) out.push_back(one->what().id);
  return out;
}

using names = std::vector<std::string>;

void put_off_first(inbox& in, timestamp until) { in.put_off(in.next_batch(1, together, noon), until); }

TEST(inbox, an_empty_one_has_nothing_to_run) {
  inbox in;
  EXPECT_TRUE(in.next_batch(10, together, {}).empty());
  EXPECT_EQ(in.size(), 0u);
}

// Proves O4
TEST(inbox, messages_run_in_the_order_of_arrival) {
  inbox in;
  in.add({make("1", "a"), make("2", "b")});
  in.add({make("3", "a")});
  EXPECT_EQ(ids(in.next_batch(10, together, {})), (names{"1", "2", "3"}));
}

TEST(inbox, a_batch_holds_no_more_than_asked_for) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  EXPECT_EQ(ids(in.next_batch(2, together, {})), (names{"1", "2"}));
  EXPECT_TRUE(in.next_batch(0, together, {}).empty());
}

TEST(inbox, asking_for_a_batch_takes_nothing_out) {
  inbox in;
  in.add({make("1", "a")});
  in.next_batch(1, together, {});
  EXPECT_EQ(ids(in.next_batch(1, together, {})), (names{"1"}));
}

TEST(inbox, what_is_finished_is_gone_and_the_rest_stays_valid) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "c")});
  const auto batch = in.next_batch(3, together, {});
  const std::vector<work*> done{batch[0], batch[2]};
  in.finished(done);
  EXPECT_EQ(in.size(), 1u);
  EXPECT_EQ(batch[1]->what().id, "2");
  EXPECT_EQ(ids(in.next_batch(3, together, {})), (names{"2"}));
}

TEST(inbox, a_message_that_needs_a_transaction_of_its_own_gets_one) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("alone", "c"), make("4", "d")});
  EXPECT_EQ(ids(in.next_batch(10, is_alone, {})), (names{"1", "2"}));
  in.finished(in.next_batch(10, is_alone, {}));
  EXPECT_EQ(ids(in.next_batch(10, is_alone, {})), (names{"alone"}));
  in.finished(in.next_batch(10, is_alone, {}));
  EXPECT_EQ(ids(in.next_batch(10, is_alone, {})), (names{"4"}));
}

TEST(inbox, one_that_has_failed_only_has_to_be_written_down_and_needs_no_transaction_of_its_own) {
  inbox in;
  in.add({make("alone", "a"), make("2", "b")});
  in.next_batch(1, is_alone, {})[0]->charge.emplace();
  EXPECT_EQ(ids(in.next_batch(10, is_alone, {})), (names{"alone", "2"}));
}

TEST(inbox, an_outage_is_tried_with_one_message_after_another) {
  inbox in;
  EXPECT_TRUE(in.probe({}).empty());
  in.add({make("1", "a"), make("2", "a"), make("3", "b")});
  in.probe({})[0]->outages.times = 1;
  EXPECT_EQ(ids(in.probe({})), names{"3"}) << "2 waits for 1";
  in.probe({})[0]->outages.times = 1;
  EXPECT_EQ(ids(in.probe({})), names{"1"}) << "from the beginning";
}

TEST(inbox, an_outage_is_tried_with_a_message_that_has_no_key_too) {
  inbox in;
  in.add({make("1", ""), make("2", "")});
  EXPECT_TRUE(in.has_untried({}));
  in.probe({})[0]->outages.times = 1;
  EXPECT_EQ(ids(in.probe({})), names{"2"}) << "nothing keeps them in order";
  in.probe({})[0]->outages.times = 1;
  EXPECT_FALSE(in.has_untried({}));
}

// Proves C8
TEST(inbox, what_is_put_off_waits_and_so_do_later_messages_of_its_key) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "a"), make("4", "a", 0, "payments")});
  put_off_first(in, noon + 100ms);
  EXPECT_EQ(in.put_off_until(), noon + 100ms);
  EXPECT_EQ(ids(in.next_batch(10, together, noon)), (names{"2", "4"}));
  EXPECT_EQ(in.ready(noon), 2u);
  EXPECT_EQ(ids(in.probe(noon)), names{"2"});
}

TEST(inbox, what_was_put_off_runs_in_its_old_place_when_the_time_has_come) {
  inbox in;
  in.add({make("1", "a"), make("2", "b"), make("3", "a")});
  put_off_first(in, noon + 100ms);
  EXPECT_EQ(ids(in.next_batch(10, together, noon + 100ms)), (names{"1", "2", "3"}));
  EXPECT_EQ(in.ready(noon + 100ms), 3u);
}

TEST(inbox, a_clock_that_was_set_back_puts_nothing_off_for_longer) {
  inbox in;
  in.add({make("1", "a")});
  put_off_first(in, noon + 100ms);
  EXPECT_EQ(ids(in.next_batch(10, together, noon - 1h)), names{"1"});
}

TEST(inbox, only_what_may_run_fills_a_batch) {
  inbox in;
  in.add({make("1", "a"), make("2", "a"), make("3", "b"), make("4", "c")});
  put_off_first(in, noon + 1s);
  EXPECT_EQ(ids(in.next_batch(2, together, noon)), (names{"3", "4"}));
}

TEST(inbox, that_is_cleared_has_nothing_left) {
  inbox in;
  in.add({make("1", "a")});
  in.clear();
  EXPECT_EQ(in.size(), 0u);
  EXPECT_EQ(in.ready({}), 0u);
  EXPECT_FALSE(in.has_untried({}));
}

// Proves C4
TEST(inbox, revoked_partitions_are_forgotten_and_others_kept) {
  inbox in;
  in.add({make("1", "a", 1), make("2", "b", 2), make("3", "c", 3), make("4", "d", 1)});
  const std::vector<std::uint32_t> gone{1, 3};
  in.revoke(gone);
  EXPECT_EQ(ids(in.next_batch(10, together, {})), (names{"2"}));
  in.revoke({});
  EXPECT_EQ(in.size(), 1u);
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

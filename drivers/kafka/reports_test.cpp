#include "kafka/reports.hpp"

#include <gtest/gtest.h>

namespace settle::inline v0::kafka {
namespace {

using indices = std::vector<std::size_t>;
using enum publish_status;

constexpr auto fine = RD_KAFKA_RESP_ERR_NO_ERROR;
constexpr auto too_large = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
constexpr auto called_back = RD_KAFKA_RESP_ERR__PURGE_QUEUE;

message of(const char* topic, const char* key) {
  message made;
  made.topic = topic;
  made.key = key;
  return made;
}

struct kafka_reports : ::testing::Test {
  void attempt(const std::map<std::size_t, rd_kafka_resp_err_t>& said, const char* why = "away") {
    for (const auto index : batch_reports.next()) batch_reports.sent(index);
    for (const auto& [index, report] : said) batch_reports.take(index, report, "reason");
    batch_reports.end_attempt(why);
  }
  std::vector<publish_status> statuses() const {
    std::vector<publish_status> all;
    for (const auto& one : results) all.push_back(one.status);
    return all;
  }

  std::vector<message> batch{of("orders", "a"), of("orders", "b"), of("orders", "a"), of("stock", "a")};
  std::vector<publish_result> results{batch.size()};
  reports batch_reports{batch, {0, 1, 2, 3}, results};
};

TEST_F(kafka_reports, of_confirmed_messages_leave_nothing_to_do) {
  EXPECT_EQ(batch_reports.next(), (indices{0, 1, 2, 3}));
  attempt({{0, fine}, {1, fine}, {2, fine}, {3, fine}});
  EXPECT_FALSE(batch_reports.has_failed());
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{confirmed, confirmed, confirmed, confirmed}));
}

// Proves C3: nobody is charged for a destination that is away
TEST_F(kafka_reports, that_blame_the_destination_end_the_batch) {
  attempt({{0, fine}, {1, RD_KAFKA_RESP_ERR__TRANSPORT}}, "no connection");
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{confirmed, destination_failed, destination_failed, destination_failed}));
  EXPECT_EQ(results[3].reason, "no connection");
}

TEST_F(kafka_reports, that_do_not_come_in_time_end_the_batch) {
  attempt({{0, fine}});
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{confirmed, destination_failed, destination_failed, destination_failed}));
}

// Proves O4: only what fails alone is charged, and its key waits behind it
TEST_F(kafka_reports, of_a_batch_that_is_too_large_make_it_go_one_by_one) {
  attempt({{0, too_large}, {1, too_large}, {2, called_back}, {3, fine}});
  EXPECT_EQ(batch_reports.next(), indices{0});
  attempt({{0, too_large}});
  EXPECT_EQ(batch_reports.next(), indices{1});
  attempt({{1, fine}});
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{message_rejected, confirmed, destination_failed, confirmed}));
}

TEST_F(kafka_reports, of_a_topic_that_nobody_takes_let_the_others_go_on) {
  attempt({{0, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED}, {1, called_back}, {3, called_back}});
  EXPECT_EQ(batch_reports.next(), indices{3});
  attempt({{3, fine}});
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{topic_unavailable, topic_unavailable, topic_unavailable, confirmed}));
  EXPECT_EQ(results[2].reason, "reason");
}

TEST_F(kafka_reports, of_what_was_refused_before_it_was_sent_keep_its_key_back) {
  batch_reports.next();
  batch_reports.refuse(0, {message_rejected, "too large"});
  EXPECT_FALSE(batch_reports.may_send(2));
  EXPECT_TRUE(batch_reports.may_send(1));
  for (const std::size_t index : {1, 3}) batch_reports.sent(index);
  for (const std::size_t index : {1, 3}) batch_reports.take(index, fine, "");
  EXPECT_TRUE(batch_reports.complete());
  batch_reports.end_attempt("");
  EXPECT_TRUE(batch_reports.next().empty());
  EXPECT_EQ(statuses(), (std::vector{message_rejected, confirmed, destination_failed, confirmed}));
}

TEST(messages_of_a_key, are_held_back_behind_one_that_was_not_confirmed) {
  const std::vector batch{of("orders", "a"), of("orders", "a"), of("stock", "a"), of("orders", "")};
  std::vector<publish_result> results{{destination_failed, "away"}, {}, {}, {}};
  hold_back_later_ones(batch, results);
  EXPECT_EQ(results[1].status, destination_failed);
  EXPECT_EQ(results[2].status, confirmed);
  EXPECT_EQ(results[3].status, confirmed);
}

}  // namespace
}  // namespace settle::inline v0::kafka

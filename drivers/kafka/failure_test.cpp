#include "kafka/failure.hpp"

#include <gtest/gtest.h>

namespace settle::inline v0::kafka {
namespace {

// Proves C3's rule: the message's fault, the topic's and the destination's are told apart
TEST(kafka_failure, is_the_messages_where_it_will_never_be_taken_as_it_is) {
  for (const auto code : {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
                          RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, RD_KAFKA_RESP_ERR_INVALID_RECORD,
                          RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, RD_KAFKA_RESP_ERR_INVALID_MSG})
    EXPECT_EQ(status_of(code), publish_status::message_rejected) << rd_kafka_err2name(code);
}

TEST(kafka_failure, is_the_topics_where_others_are_still_taken) {
  for (const auto code : {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_POLICY_VIOLATION})
    EXPECT_EQ(status_of(code), publish_status::topic_unavailable) << rd_kafka_err2name(code);
}

TEST(kafka_failure, is_the_destinations_everywhere_else_and_charges_nobody) {
  for (const auto code :
       {RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__PURGE_QUEUE,
        RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE,
        RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_UNKNOWN})
    EXPECT_EQ(status_of(code), publish_status::destination_failed) << rd_kafka_err2name(code);
  EXPECT_EQ(status_of(RD_KAFKA_RESP_ERR_NO_ERROR), publish_status::confirmed);
}

TEST(kafka_failure, of_a_commit_is_a_loss_or_passes_or_neither) {
  EXPECT_TRUE(means_lost(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION));
  EXPECT_TRUE(means_lost(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID));
  EXPECT_FALSE(means_lost(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS));
  EXPECT_TRUE(is_passing(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS));
  EXPECT_TRUE(is_passing(RD_KAFKA_RESP_ERR__TRANSPORT));
  EXPECT_FALSE(is_passing(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED));
  EXPECT_FALSE(is_passing(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID));
}

}  // namespace
}  // namespace settle::inline v0::kafka

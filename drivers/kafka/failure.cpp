#include "kafka/failure.hpp"

#include <fmt/format.h>

namespace settle::inline v0::kafka {

publish_status status_of(rd_kafka_resp_err_t report) {
  switch (report) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return publish_status::confirmed;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return publish_status::message_rejected;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return publish_status::topic_unavailable;
    default:
      return publish_status::destination_failed;
  }
}

bool means_lost(rd_kafka_resp_err_t answer) {
  switch (answer) {
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
    case RD_KAFKA_RESP_ERR__FENCED:
    case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
      return true;
    default:
      return false;
  }
}

bool means_gone(rd_kafka_resp_err_t answer) {
  return answer == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || answer == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
         answer == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

bool is_passing(rd_kafka_resp_err_t answer) {
  switch (answer) {
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR__WAIT_CACHE:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
      return true;
    default:
      return false;
  }
}

std::string text_of(rd_kafka_resp_err_t code) {
  return fmt::format("{} ({})", rd_kafka_err2str(code), rd_kafka_err2name(code));
}

}  // namespace settle::inline v0::kafka

// Whose failure an error of the client library is. Pure.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

// What a delivery report says of a message: confirmed, or whose fault it is that it was not.
publish_status status_of(rd_kafka_resp_err_t report);

// The server has refused a batch for its size; each of its messages may still fit.
inline bool is_too_large(rd_kafka_resp_err_t report) {
  return report == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
         report == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE || report == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

// Somebody else may own the partitions of whoever is told this when it commits.
bool means_lost(rd_kafka_resp_err_t answer);

// There is no such topic, or not any more.
bool means_gone(rd_kafka_resp_err_t answer);

// The same commit may succeed in a moment.
bool is_passing(rd_kafka_resp_err_t answer);

// "Unknown topic or partition (UNKNOWN_TOPIC_OR_PART)"
std::string text_of(rd_kafka_resp_err_t code);

}  // namespace settle::inline v0::kafka

// A record of a log, as the client library has it.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

#include "settle/broker.hpp"

namespace settle::inline v0::kafka {

message content_of(const rd_kafka_message_t& from, const std::string& topic);

}  // namespace settle::inline v0::kafka

// A record of a log, as the client library has it.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

#include "settle/broker.hpp"
#include "wire/mapping.hpp"

namespace settle::inline v0::kafka {

// `by`: of a topic of others; null: of events alone.
message content_of(const rd_kafka_message_t& from, const std::string& topic, const mapper* by);

}  // namespace settle::inline v0::kafka

// The broker of a kafka:// URL. A build without its driver (-DSETTLE_KAFKA=OFF) has without_kafka.cpp instead
// of kafka.cpp: there both functions that need it throw invalid_argument with the sentence of
// missing_kafka().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "settle/kafka.hpp"

namespace settle::compose {

// True for kafka://… and kafkas://…
inline bool is_kafka(std::string_view where) {
  return where.starts_with("kafka://") || where.starts_with("kafkas://");
}

// Why this build cannot use a Kafka, and what to do about it; empty: it can.
std::string missing_kafka();

std::unique_ptr<broker> open_kafka(const std::string& url, const kafka::options& with = {});

// The same URL without user and password, for people to read. Throws invalid_argument, without quoting it, if
// it cannot be read.
std::string kafka_without_secrets(const std::string& url);

}  // namespace settle::compose

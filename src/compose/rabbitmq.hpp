// The broker of an amqp:// URL. A build without its driver (-DSETTLE_RABBITMQ=OFF) has without_rabbitmq.cpp
// instead of rabbitmq.cpp: there both functions that need it throw invalid_argument with the sentence of
// missing_rabbitmq().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "settle/rabbitmq.hpp"

namespace settle::compose {

// True for amqp://… and amqps://…
inline bool is_rabbitmq(std::string_view where) {
  return where.starts_with("amqp://") || where.starts_with("amqps://");
}

// Why this build cannot use a RabbitMQ, and what to do about it; empty: it can.
std::string missing_rabbitmq();

std::unique_ptr<broker> open_rabbitmq(const std::string& url, const rabbitmq::options& with = {});

// The same URL without user and password, for people to read. Throws invalid_argument, without quoting it, if
// it cannot be read.
std::string rabbitmq_without_secrets(const std::string& url);

// Why it is no template for routing keys; empty: it is one, or this build cannot tell.
std::string unusable_routing_key(std::string_view text);

}  // namespace settle::compose

// The Redis of a redis:// URL. A build without its driver (-DSETTLE_REDIS=OFF) has without_redis.cpp instead
// of redis.cpp: there both functions throw invalid_argument with the sentence of missing_redis().
#pragma once

#include <memory>
#include <string>

#include "settle/redis.hpp"

namespace settle::compose {

// Why this build cannot use a Redis, and what to do about it; empty: it can.
std::string missing_redis();

std::unique_ptr<redis::client> open_redis(const std::string& url, const redis::options& with = {});

// The same URL without user and password, for people to read. Throws invalid_argument, without quoting it, if
// it cannot be read.
std::string redis_without_secrets(const std::string& url);

}  // namespace settle::compose

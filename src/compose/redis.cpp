#include "compose/redis.hpp"

#include "redis/address.hpp"

namespace settle::compose {

std::string missing_redis() { return {}; }

std::unique_ptr<redis::client> open_redis(const std::string& url, const redis::options& with) {
  return redis::open(url, with);
}

std::string redis_without_secrets(const std::string& url) {
  const auto at = redis::parse_url(url);
  return "redis://" + at.host + ":" + std::to_string(at.port) + "/" + std::to_string(at.database);
}

}  // namespace settle::compose

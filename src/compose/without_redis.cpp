// For builds with -DSETTLE_REDIS=OFF.
#include "compose/redis.hpp"
#include "settle/error.hpp"

namespace settle::compose {
namespace {

[[noreturn]] void refuse() { throw error(errc::invalid_argument, missing_redis()); }

}  // namespace

std::string missing_redis() {
  return "this build of Settle has no driver for Redis: build Settle with -DSETTLE_REDIS=ON, which needs "
         "hiredis, "
         "or leave it out";
}

std::unique_ptr<redis::client> open_redis(const std::string&, const redis::options&) { refuse(); }
std::string redis_without_secrets(const std::string&) { refuse(); }

}  // namespace settle::compose

// One connection to a server, on hiredis' blocking interface.
#pragma once

#include <hiredis/hiredis.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "redis/address.hpp"
#include "settle/redis.hpp"

namespace settle::inline v0::redis {

class redis_connection {
 public:
  // Connects, signs in, chooses the database and looks at the settings that decide what is kept.
  redis_connection(const address& to, const options& with);

  reply run(std::span<const std::string_view> words);
  reply run(const script& what, std::span<const std::string> keys, std::span<const std::string> values);

  // Whether it may serve another command: nothing failed, and nothing came unasked.
  bool usable() const noexcept;

 private:
  struct close {
    void operator()(redisContext* open) const noexcept { redisFree(open); }
  };
  void check_settings();
  std::string how_it_syncs();
  std::string load(const script& what);
  void send(std::span<const std::string_view> words);

  const address& to_;
  std::unique_ptr<redisContext, close> open_;
  bool broken_ = false;
  std::map<std::string, std::string, std::less<>> loaded_;  // a script's source and its hash
};

}  // namespace settle::inline v0::redis

// A bounded pool of connections behind the public interface.
#include <condition_variable>
#include <mutex>
#include <vector>

#include "redis/connection.hpp"
#include "settle/error.hpp"
#include "settle/redis.hpp"

namespace settle::inline v0::redis {
namespace {

class pooled_client final : public client {
 public:
  pooled_client(address to, const options& with) : to_(std::move(to)), with_(with) {
    if (with.connections_max < 1) throw error(errc::invalid_argument, "connections_max is at least 1");
  }

  reply run(std::span<const std::string_view> words) override {
    if (words.empty()) throw error(errc::invalid_argument, "a command without words");
    return with_connection([&](redis_connection& on) { return on.run(words); });
  }

  reply run(const script& what, std::span<const std::string> keys,
            std::span<const std::string> values) override {
    return with_connection([&](redis_connection& on) { return on.run(what, keys, values); });
  }

  const environment& env() const override { return with_.env; }
  std::string name() const override { return to_.name(); }

 private:
  template <class Use>
  reply with_connection(Use use) {
    auto on = acquire();
    try {
      auto answer = use(*on);
      release(std::move(on));
      return answer;
    } catch (...) {
      release(std::move(on));
      throw;
    }
  }

  std::unique_ptr<redis_connection> acquire() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, with_.command_timeout, [&] { return in_use_ < with_.connections_max; }))
      throw error(errc::store_busy, "all connections to " + to_.name() + " are in use");
    ++in_use_;
    while (!idle_.empty()) {
      auto found = std::move(idle_.back());
      idle_.pop_back();
      if (found->usable()) return found;
    }
    lock.unlock();
    try {
      return std::make_unique<redis_connection>(to_, with_);
    } catch (...) {
      release(nullptr);
      throw;
    }
  }

  void release(std::unique_ptr<redis_connection> used) {
    const std::scoped_lock lock(mutex_);
    --in_use_;
    if (used && used->usable()) idle_.push_back(std::move(used));
    changed_.notify_one();
  }

  address to_;
  options with_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<redis_connection>> idle_;
  int in_use_ = 0;
};

}  // namespace

std::unique_ptr<client> open(const std::string& url, const options& opts) {
  return std::make_unique<pooled_client>(parse_url(url), opts);
}

}  // namespace settle::inline v0::redis

// A broker that hands out a list of messages once, as acknowledging brokers do: no partitions, no owners.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/error.hpp"

namespace settle::test {

class list_broker final : public broker, public publisher {
 public:
  std::vector<message> messages;           // to be delivered
  std::vector<std::int64_t> acknowledged;  // their indexes
  int acknowledge_calls = 0;
  bool notes_acknowledgements = true;  // false: it would deliver everything again
  partition_fence fence;               // given with every delivery
  std::optional<timestamp> stored_at;  // likewise
  std::string log = "list";            // the name of its only partition
  std::vector<message> published;
  std::vector<std::uint32_t> revoke;  // with the next fetch
  bool away = false;

  publisher& publishing() override { return *this; }

  std::vector<publish_result> publish(std::span<const message> batch) override {
    published.insert(published.end(), batch.begin(), batch.end());
    return std::vector<publish_result>(batch.size());
  }

  std::unique_ptr<settle::subscription> subscribe(const subscribe_options&) override {
    return std::make_unique<list_subscription>(*this);
  }

 private:
  class until_stopped final : public wakeup {
   public:
    void wait(duration at_most, std::stop_token stop) override {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, at_most, [] { return false; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
  };

  class list_subscription final : public settle::subscription {
   public:
    explicit list_subscription(list_broker& home) : home_(home) {}

    fetched fetch(std::size_t messages_max) override {
      if (home_.away) throw error(errc::store_unavailable, "the list is away");
      fetched out;
      out.revoked = std::exchange(home_.revoke, {});
      for (; next_ < home_.messages.size() && out.deliveries.size() < messages_max; ++next_)
        out.deliveries.push_back(
            {home_.messages[next_], {0, static_cast<std::int64_t>(next_)}, home_.fence, home_.stored_at});
      return out;
    }
    void acknowledge(std::span<const delivery_tag> done) override {
      ++home_.acknowledge_calls;
      for (const auto& tag : done) home_.acknowledged.push_back(tag.position);
    }
    std::vector<settled_partition> settled() const override {
      std::int64_t position = -1;
      if (!home_.notes_acknowledgements) return {{0, home_.log, position}};
      while (std::ranges::find(home_.acknowledged, position + 1) != home_.acknowledged.end()) ++position;
      return {{0, home_.log, position}};
    }
    void leave() noexcept override {}
    wakeup& arrivals() override { return arrivals_; }

   private:
    list_broker& home_;
    std::size_t next_ = 0;
    until_stopped arrivals_;
  };
};

}  // namespace settle::test

// A broker that hands out a list of messages once, as acknowledging brokers do: no partitions, no owners.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"

namespace settle::test {

class list_broker final : public broker, public publisher {
 public:
  std::vector<message> messages;           // to be delivered
  std::vector<std::int64_t> acknowledged;  // their indexes
  int acknowledge_calls = 0;
  bool notes_acknowledgements = true;  // false: it would deliver everything again
  std::string partition;               // whose owner its only member is; empty: it has no owners
  std::optional<timestamp> stored_at;  // likewise
  std::string log = "list";            // the name of its only partition
  std::vector<message> published;
  std::vector<std::uint32_t> revoke;  // with the next fetch
  bool away = false;
  bool still_ours = false;  // the answer to a doubt
  std::vector<std::uint32_t> doubted;

  broker_traits traits() const override { return {.has_owners = !partition.empty()}; }
  publisher& publishing() override { return *this; }

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
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

    fetched fetch(std::size_t messages_max, const call_limits&) override {
      if (home_.away) throw error(errc::store_unavailable, "the list is away");
      fetched out;
      out.revoked = std::exchange(home_.revoke, {});
      if (session_ == 0 && !home_.partition.empty()) {
        session_ = next_session_++;
        out.assigned.push_back({0, session_, home_.partition});
      }
      for (; next_ < home_.messages.size() && out.deliveries.size() < messages_max; ++next_)
        out.deliveries.push_back({.content = home_.messages[next_],
                                  .tag = {0, session_, next_},
                                  .at = log_position::of(static_cast<std::int64_t>(next_)),
                                  .stored_at = home_.stored_at});
      return out;
    }
    void acknowledge(std::span<const delivery_tag> done, const call_limits&) override {
      ++home_.acknowledge_calls;
      for (const auto& tag : done) home_.acknowledged.push_back(static_cast<std::int64_t>(tag.number));
    }
    void doubt(std::uint32_t partition) override {
      home_.doubted.push_back(partition);
      if (!home_.still_ours) return;
      session_ = 0;
      next_ = 0;
      while (std::ranges::find(home_.acknowledged, static_cast<std::int64_t>(next_)) !=
             home_.acknowledged.end())
        ++next_;
    }
    std::vector<settled_partition> settled() const override {
      std::int64_t position = -1;
      if (!home_.notes_acknowledgements) return {{0, home_.log}};
      while (std::ranges::find(home_.acknowledged, position + 1) != home_.acknowledged.end()) ++position;
      return {{0, home_.log, position < 0 ? log_position() : log_position::of(position)}};
    }
    void leave() noexcept override {}
    wakeup& arrivals() override { return arrivals_; }

   private:
    list_broker& home_;
    std::size_t next_ = 0;
    std::uint32_t session_ = 0;  // 0: not assigned
    std::uint32_t next_session_ = 1;
    until_stopped arrivals_;
  };
};

}  // namespace settle::test

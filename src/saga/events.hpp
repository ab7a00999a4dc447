// The consumer that puts a host's events into its mailbox.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "saga/mailbox.hpp"
#include "settle/consume.hpp"

namespace settle::sagas {

using key_reader = std::function<std::string(std::string_view payload)>;
using key_readers = std::map<std::string, key_reader, std::less<>>;  // by type

class event_intake final : public service {
 public:
  event_intake(database& db, broker& from, const std::string& host);

  void on(std::string_view topic, std::string_view type, key_reader key_of);
  bool is_empty() const { return !listens_; }

  // When it began to look, the last time that it found nothing more. What was published before is in the
  // mailbox.
  timestamp empty_at() const { return timestamp(duration(empty_at_us_.load())); }

  std::string_view name() const override { return consumer_.name(); }
  const environment& env() const override { return consumer_.env(); }
  bool run_once(std::stop_token cancel) override;
  wakeup& arrivals() override { return consumer_.arrivals(); }
  duration idle_wait() const override { return consumer_.idle_wait(); }
  void leave() noexcept override { consumer_.leave(); }
  void abandon() noexcept override { consumer_.abandon(); }

 private:
  mailbox mail_;
  consumer consumer_;
  bool listens_ = false;
  std::atomic<std::int64_t> empty_at_us_ = 0;
};

}  // namespace settle::sagas

// The consumer that puts a host's events into its mailbox.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "saga/mailbox.hpp"
#include "settle/consume.hpp"
#include "settle/driver/broker.hpp"

namespace settle::sagas {

using key_reader = std::function<std::string(std::string_view payload)>;
using key_readers = std::map<std::string, key_reader, std::less<>>;  // by type

class event_intake final : public service {
 public:
  event_intake(database& db, broker& from, const std::string& host);

  void on(std::string_view topic, std::string_view type, key_reader key_of);
  // Events that answer commands, whose ids they carry.
  void on_reply(const std::string& topic, const std::string& type);
  bool is_empty() const { return !listens_; }

  // What was at the broker then is in the mailbox, whichever process of this host has read it.
  timestamp caught_up_at() const { return timestamp(duration(caught_up_at_us_.load())); }
  // Somebody wants to know that of this time, which has passed. It costs questions to the broker, so they are
  // asked only then. From any thread.
  void catch_up_to(timestamp wanted);

  std::string_view name() const override { return consumer_.name(); }
  const environment& env() const override { return consumer_.env(); }
  bool run_once(std::stop_token cancel) override;
  wakeup& arrivals() override { return consumer_.arrivals(); }
  duration idle_wait() const override;
  void leave() noexcept override { consumer_.leave(); }
  void abandon() noexcept override { consumer_.abandon(); }

 private:
  bool is_behind() const { return caught_up_at_us_ < wanted_us_; }
  void look_at_backlog(bool found_nothing, timestamp began, const std::stop_token& cancel);

  std::string host_;
  mailbox mail_;
  broker& broker_;
  consumer consumer_;
  bool listens_ = false;
  std::atomic<std::int64_t> wanted_us_ = 0;
  std::atomic<std::int64_t> caught_up_at_us_ = 0;
  std::unique_ptr<backlog> backlog_;  // of asked_at_
  timestamp asked_at_{};
  timestamp next_look_{};
};

}  // namespace settle::sagas

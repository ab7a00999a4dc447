// A background service of the daemon at work: prepared first, watched, on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/services/prepared_service.hpp"
#include "daemon/services/watched_service.hpp"
#include "settle/service.hpp"

namespace settle::daemon {

class running_service {
 public:
  // Does not start yet. `prepare` and `first_round` are called on the service's thread: the one until it does
  // not throw, the other once, when a round has ended well.
  running_service(std::unique_ptr<service> what, std::function<void()> prepare,
                  std::function<void()> first_round = {})
      : what_(std::move(what)),
        prepared_(*what_, std::move(prepare)),
        watched_(prepared_, std::move(first_round)) {}

  void start() { loop_ = std::make_unique<background>(watched_); }

  // To all of them first, so that they share the time to finish.
  void ask_to_stop() {
    if (loop_) loop_->ask_to_stop();
  }
  bool stop(duration drain) { return !loop_ || loop_->stop(drain); }

  std::string_view name() const { return what_->name(); }
  std::optional<std::string> trouble(duration silence_max) const { return watched_.trouble(silence_max); }

 private:
  std::unique_ptr<service> what_;
  prepared_service prepared_;
  watched_service watched_;
  std::unique_ptr<background> loop_;
};

}  // namespace settle::daemon

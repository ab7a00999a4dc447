// A background service, and how it is doing: what /readyz asks.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "settle/service.hpp"

namespace settle::daemon {

class watched_service final : public service {
 public:
  // `first_round` is called once, on the service's thread, when a round has ended well.
  watched_service(service& inner, std::function<void()> first_round)
      : inner_(inner), first_round_(std::move(first_round)) {}

  // Why it cannot be counted on now, or nothing. A round may take `silence_max`, the sleep before it
  // included.
  std::optional<std::string> trouble(duration silence_max) const;

  bool run_once(std::stop_token cancel) override;
  std::string_view name() const override { return inner_.name(); }
  const environment& env() const override { return inner_.env(); }
  wakeup& arrivals() override { return inner_.arrivals(); }
  duration idle_wait() const override { return inner_.idle_wait(); }
  void leave() noexcept override { inner_.leave(); }
  void abandon() noexcept override { inner_.abandon(); }

 private:
  void note_success();
  void note_failure(std::string why) noexcept;

  service& inner_;
  std::function<void()> first_round_;
  mutable std::mutex mutex_;
  std::optional<timestamp> last_success_;
  bool fails_ = false;   // the last round did
  std::string failure_;  // and why
};

}  // namespace settle::daemon

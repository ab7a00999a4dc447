// A background service that needs something done before its first round, and waits until it can be done.
#pragma once

#include <functional>

#include "settle/service.hpp"

namespace settle::daemon {

class prepared_service final : public service {
 public:
  // `prepare` is called on the service's thread, before the first round, until it does not throw. Empty:
  // nothing is left to do.
  prepared_service(service& inner, std::function<void()> prepare)
      : inner_(inner), prepare_(std::move(prepare)) {}

  bool run_once(std::stop_token cancel) override {
    if (prepare_) prepare_();
    prepare_ = nullptr;
    return inner_.run_once(std::move(cancel));
  }
  std::string_view name() const override { return inner_.name(); }
  const environment& env() const override { return inner_.env(); }
  wakeup& arrivals() override { return inner_.arrivals(); }
  duration idle_wait() const override { return inner_.idle_wait(); }
  // Nothing is held before the first round.
  void leave() noexcept override {
    if (!prepare_) inner_.leave();
  }
  void abandon() noexcept override {
    if (!prepare_) inner_.abandon();
  }

 private:
  service& inner_;
  std::function<void()> prepare_;
};

}  // namespace settle::daemon

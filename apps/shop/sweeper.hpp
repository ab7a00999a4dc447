// Removes what Settle has kept long enough: answers of requests, and webhooks that are over.
#pragma once

#include "settle/database.hpp"
#include "settle/once.hpp"
#include "settle/service.hpp"
#include "settle/webhook.hpp"
#include "timer.hpp"

namespace shop {

class sweeper final : public settle::service {
 public:
  explicit sweeper(settle::database& db) : db_(db) {}

  bool run_once(std::stop_token) override {
    return settle::forget_expired_keys(db_) + settle::webhook::expire(db_) > 0;
  }

  std::string_view name() const override { return "sweeper"; }
  const settle::environment& env() const override { return db_.env(); }
  settle::wakeup& arrivals() override { return timer_; }
  settle::duration idle_wait() const override { return std::chrono::minutes(1); }

 private:
  settle::database& db_;
  timer timer_;
};

}  // namespace shop

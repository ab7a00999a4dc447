// A stand-in for the payment provider, with a memory of its own: it charges, refuses, keeps silent, sends
// signed webhooks once, often, late and out of order, and counts what it has really taken and given back. It
// uses nothing of Settle's protections, only its database: its count is what the shop is judged by.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "gateway/fate.hpp"
#include "http_client.hpp"
#include "service.hpp"

namespace shop {

extern const std::string_view gateway_tables;

// Sends what is due until it is answered with 200.
class webhook_sender final : public settle::service {
 public:
  webhook_sender(settle::database& db, const config& of);

  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "webhook_sender"; }
  const settle::environment& env() const override { return db_.env(); }
  settle::wakeup& arrivals() override { return *arrivals_; }
  settle::duration idle_wait() const override { return std::chrono::milliseconds(50); }

 private:
  struct delivery {
    std::int64_t id = 0, attempts = 0;
    std::string body;
    bool forged = false;
  };
  std::vector<delivery> due();
  int send(const delivery& what);

  settle::database& db_;
  config of_;
  http_client first_, second_;  // copies that come at the same time need two connections
  std::unique_ptr<settle::wakeup> arrivals_;
};

class gateway_service final : public service {
 public:
  explicit gateway_service(const surroundings& with);
  void add_routes(settle::http::router& to) override;
  std::vector<settle::service*> loops() override { return {&sender_}; }

  webhook_sender& sender() { return sender_; }

 private:
  settle::http::response charge(const settle::http::request& asked);
  settle::http::response refund(const settle::http::request& asked);
  settle::http::response release(const settle::http::request& asked);
  settle::http::response with_moods(
      const settle::http::request& asked,
      settle::http::response (gateway_service::*what)(const settle::http::request&));

  settle::database& db_;
  config of_;
  webhook_sender sender_;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace shop

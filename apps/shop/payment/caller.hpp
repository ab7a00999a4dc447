// Makes the gateway the calls that were committed as intents, until it has confirmed each.
#pragma once

#include <vector>

#include "http_client.hpp"
#include "payment/payments.hpp"
#include "settle/database.hpp"
#include "settle/service.hpp"

namespace shop {

class gateway_caller final : public settle::service {
 public:
  gateway_caller(settle::database& db, const payments& of, http_client::port_finder gateway);

  // Claims a batch of due calls, makes them outside of any transaction, and notes what came of them.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "gateway_caller"; }
  const settle::environment& env() const override { return db_.env(); }
  settle::wakeup& arrivals() override { return *arrivals_; }
  settle::duration idle_wait() const override { return std::chrono::milliseconds(100); }

 private:
  struct outcome {
    gateway_call of;
    int status = 0;
  };
  std::vector<gateway_call> claim(const std::stop_token& cancel);
  int make(const gateway_call& what);
  void note(const std::vector<outcome>& all);

  settle::database& db_;
  const payments& payments_;
  http_client http_;
  std::unique_ptr<settle::wakeup> arrivals_;
};

}  // namespace shop

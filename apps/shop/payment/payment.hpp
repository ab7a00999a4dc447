// The payment service: asks the gateway for the money, hears from it by webhook, gives it back.
#pragma once

#include "payment/caller.hpp"
#include "payment/payments.hpp"
#include "service.hpp"
#include "settle/lock.hpp"
#include "settle/webhook.hpp"

namespace shop {

class payment_service final : public service {
 public:
  explicit payment_service(const surroundings& with);
  void add_routes(settle::http::router& to) override;
  std::vector<settle::service*> loops() override { return {&listener_, &caller_}; }
  const settle::consumer* listener() const override { return &listener_; }

  // POST /webhooks/payment: signature, lock, deduplication, payment record and event, in this order.
  settle::http::response hear(const settle::http::request& asked);

  payments& all() { return payments_; }
  settle::consumer& events() { return listener_; }
  gateway_caller& caller() { return caller_; }

 private:
  settle::http::response refund(const settle::http::request& asked, settle::transaction& tx) const;

  settle::database& db_;
  payments payments_;
  settle::consumer listener_;
  gateway_caller caller_;
  settle::locks locks_;
  settle::webhook::verifier verifier_;
  settle::webhook::inbox inbox_;
};

// How the gateway signs.
settle::webhook::signing webhook_signing(const config& of);

}  // namespace shop

// The order service: products with their sellable stock, carts and orders.
#pragma once

#include <string_view>

#include "order/orders.hpp"
#include "service.hpp"

namespace shop {

extern const std::string_view order_tables;

// Cancels orders whose payment has not come in time.
class order_expiry final : public settle::service {
 public:
  order_expiry(settle::database& db, const orders& of);

  // A batch of those that are due, each in a transaction of its own.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "order_expiry"; }
  const settle::environment& env() const override { return db_.env(); }
  settle::wakeup& arrivals() override { return *timer_; }
  settle::duration idle_wait() const override { return std::chrono::milliseconds(200); }

 private:
  settle::database& db_;
  const orders& orders_;
  std::unique_ptr<settle::wakeup> timer_;
};

class order_service final : public service {
 public:
  explicit order_service(const surroundings& with);
  void add_routes(settle::http::router& to) override;
  std::vector<settle::service*> loops() override { return {&listener_, &expiry_}; }
  const settle::consumer* listener() const override { return &listener_; }

  orders& all() { return orders_; }
  settle::consumer& events() { return listener_; }
  order_expiry& expiry() { return expiry_; }

 private:
  void listen();
  void add_order_routes(settle::http::router& to);

  settle::database& db_;
  orders orders_;
  settle::consumer listener_;
  order_expiry expiry_;
};

// Products and carts.
void add_cart_routes(settle::http::router& to, settle::database& db);

}  // namespace shop

// The warehouse: physical stock. In whatever order the events about an order arrive, the end is the same:
// what was cancelled is released, what was paid and is there is confirmed, what was paid and is not is
// rejected.
#pragma once

#include <string_view>

#include "events.hpp"
#include "service.hpp"
#include "settle/quantity.hpp"

namespace shop {

extern const std::string_view warehouse_tables;

class warehouse_service final : public service {
 public:
  explicit warehouse_service(const surroundings& with);
  void add_routes(settle::http::router& to) override;
  std::vector<settle::service*> loops() override { return {&listener_, &expiry_}; }
  const settle::consumer* listener() const override { return &listener_; }

  // Each in the caller's transaction; a repetition does nothing.
  void reserve(settle::transaction& tx, const order_pending_payment& what) const;
  void confirm(settle::transaction& tx, const order_paid& what) const;
  void release(settle::transaction& tx, const order_cancelled& what) const;
  // Goods that have come; false: this receipt is known.
  bool receive(settle::transaction& tx, const stock_received& what) const;

  settle::consumer& events() { return listener_; }

 private:
  bool hold(settle::transaction& tx, const std::string& order, const std::vector<line>& lines) const;

  settle::database& db_;
  settle::duration hold_for_;
  settle::quantity stock_;
  settle::consumer listener_;
  settle::reservation_expiry expiry_;
};

}  // namespace shop

// What the services tell each other. Each event has one owner: the service whose topic it is on.
//
// order.pending_payment is mirrored by order.cancelled, payment.captured by payment.refunded, and
// stock.reserved by stock.released.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "settle/codec.hpp"

namespace shop {

struct line {
  std::string sku;
  std::int64_t quantity = 0;
  std::int64_t price_cents = 0;  // of one
  friend bool operator==(const line&, const line&) = default;
};

// checkout.events
struct placement_requested {
  std::string checkout_session_id;
  std::string user_id;
  std::string idempotency_key;
  std::int64_t expected_total_cents = -1;  // what the buyer has seen; -1: nothing
  std::string payment_method;
};

// order.events
struct order_pending_payment {
  std::string order_id, user_id, checkout_session_id, payment_method;
  std::int64_t total_cents = 0;
  std::int64_t pay_until_us = 0;
  std::vector<line> lines;
};
struct placement_refused {
  std::string checkout_session_id, user_id, code;
};
struct order_paid {
  std::string order_id, user_id;
  std::int64_t total_cents = 0;
  std::vector<line> lines;
};
struct order_processing {
  std::string order_id, user_id;
};
struct order_cancelled {
  std::string order_id, user_id, reason;
  std::vector<line> lines;
};
struct refund_requested {
  std::string refund_request_id, order_id;
  std::int64_t amount_cents = 0;  // 0: all that is left
  std::string reason;
};

// payment.events
struct payment_initiated {
  std::string order_id;
};
struct payment_captured {
  std::string order_id, gateway_transaction_id;
  std::int64_t amount_cents = 0;
};
struct payment_failed {
  std::string order_id, gateway_transaction_id, reason;
};
struct payment_refunded {
  std::string order_id, user_id, refund_request_id;
  std::int64_t amount_cents = 0;
};

// stock.events
struct stock_received {
  std::string sku, receipt_id;
  std::int64_t quantity = 0;
};
struct stock_reserved {
  std::string order_id;
  std::vector<line> lines;
};
struct stock_released {
  std::string order_id, reason;
  std::vector<line> lines;
};
struct stock_rejected {
  std::string order_id, reason;
};

namespace topics {
inline constexpr std::string_view checkout = "checkout.events", orders = "order.events",
                                  payments = "payment.events", stock = "stock.events";
}

// Who listens to what: every service to nothing else than this. A test compares it with the handlers, and the
// audit looks for an event that somebody should have applied and has not.
struct subscription {
  std::string_view service, type;
};
const std::vector<subscription>& declared_subscriptions();

// JSON, in events.cpp: the conversions are compiled once.
template <class T>
struct json_event {
  static std::string encode(const T& what);
  static T decode(std::string_view payload);
};

template <class T>
struct order_event : json_event<T> {
  static constexpr std::string_view aggregate_type = "order";
  static std::string key(const T& e) { return e.order_id; }
};
template <class T>
struct session_event : json_event<T> {
  static constexpr std::string_view aggregate_type = "checkout_session";
  static std::string key(const T& e) { return e.checkout_session_id; }
};

}  // namespace shop

namespace settle {

template <>
struct codec<shop::placement_requested> : shop::session_event<shop::placement_requested> {
  static constexpr auto topic = shop::topics::checkout;
  static constexpr std::string_view type = "order.placement_requested";
};
template <>
struct codec<shop::placement_refused> : shop::session_event<shop::placement_refused> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.placement_refused";
};
template <>
struct codec<shop::order_pending_payment> : shop::order_event<shop::order_pending_payment> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.pending_payment";
};
template <>
struct codec<shop::order_paid> : shop::order_event<shop::order_paid> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.paid";
};
template <>
struct codec<shop::order_processing> : shop::order_event<shop::order_processing> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.processing";
};
template <>
struct codec<shop::order_cancelled> : shop::order_event<shop::order_cancelled> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.cancelled";
};
template <>
struct codec<shop::refund_requested> : shop::order_event<shop::refund_requested> {
  static constexpr auto topic = shop::topics::orders;
  static constexpr std::string_view type = "order.refund_requested";
};
template <>
struct codec<shop::payment_initiated> : shop::order_event<shop::payment_initiated> {
  static constexpr auto topic = shop::topics::payments;
  static constexpr std::string_view type = "payment.initiated";
};
template <>
struct codec<shop::payment_captured> : shop::order_event<shop::payment_captured> {
  static constexpr auto topic = shop::topics::payments;
  static constexpr std::string_view type = "payment.captured";
};
template <>
struct codec<shop::payment_failed> : shop::order_event<shop::payment_failed> {
  static constexpr auto topic = shop::topics::payments;
  static constexpr std::string_view type = "payment.failed";
};
template <>
struct codec<shop::payment_refunded> : shop::order_event<shop::payment_refunded> {
  static constexpr auto topic = shop::topics::payments;
  static constexpr std::string_view type = "payment.refunded";
};
template <>
struct codec<shop::stock_received> : shop::json_event<shop::stock_received> {
  static constexpr auto topic = shop::topics::stock;
  static constexpr std::string_view type = "stock.received";
  static constexpr std::string_view aggregate_type = "product";
  static std::string key(const shop::stock_received& e) { return e.sku; }
};
template <>
struct codec<shop::stock_reserved> : shop::order_event<shop::stock_reserved> {
  static constexpr auto topic = shop::topics::stock;
  static constexpr std::string_view type = "stock.reserved";
};
template <>
struct codec<shop::stock_released> : shop::order_event<shop::stock_released> {
  static constexpr auto topic = shop::topics::stock;
  static constexpr std::string_view type = "stock.released";
};
template <>
struct codec<shop::stock_rejected> : shop::order_event<shop::stock_rejected> {
  static constexpr auto topic = shop::topics::stock;
  static constexpr std::string_view type = "stock.rejected";
};

}  // namespace settle

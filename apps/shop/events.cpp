#include "events.hpp"

#include <boost/describe.hpp>

#include "settle/adapter/boost_json.hpp"

namespace shop {

BOOST_DESCRIBE_STRUCT(line, (), (sku, quantity, price_cents))
BOOST_DESCRIBE_STRUCT(placement_requested, (),
                      (checkout_session_id, user_id, idempotency_key, expected_total_cents, payment_method))
BOOST_DESCRIBE_STRUCT(order_pending_payment, (),
                      (order_id, user_id, checkout_session_id, payment_method, total_cents, pay_until_us,
                       lines))
BOOST_DESCRIBE_STRUCT(placement_refused, (), (checkout_session_id, user_id, code))
BOOST_DESCRIBE_STRUCT(order_paid, (), (order_id, user_id, total_cents, lines))
BOOST_DESCRIBE_STRUCT(order_processing, (), (order_id, user_id))
BOOST_DESCRIBE_STRUCT(order_cancelled, (), (order_id, user_id, reason, lines))
BOOST_DESCRIBE_STRUCT(refund_requested, (), (refund_request_id, order_id, amount_cents, reason))
BOOST_DESCRIBE_STRUCT(payment_initiated, (), (order_id))
BOOST_DESCRIBE_STRUCT(payment_captured, (), (order_id, gateway_transaction_id, amount_cents))
BOOST_DESCRIBE_STRUCT(payment_failed, (), (order_id, gateway_transaction_id, reason))
BOOST_DESCRIBE_STRUCT(payment_refunded, (), (order_id, user_id, refund_request_id, amount_cents))
BOOST_DESCRIBE_STRUCT(stock_received, (), (sku, receipt_id, quantity))
BOOST_DESCRIBE_STRUCT(stock_reserved, (), (order_id, lines))
BOOST_DESCRIBE_STRUCT(stock_released, (), (order_id, reason, lines))
BOOST_DESCRIBE_STRUCT(stock_rejected, (), (order_id, reason))

const std::vector<subscription>& declared_subscriptions() {
  static const std::vector<subscription> all = {{"checkout", "order.pending_payment"},
                                                {"checkout", "order.placement_refused"},
                                                {"notification", "order.cancelled"},
                                                {"notification", "order.paid"},
                                                {"notification", "order.placement_refused"},
                                                {"notification", "payment.refunded"},
                                                {"order", "order.placement_requested"},
                                                {"order", "payment.captured"},
                                                {"order", "payment.failed"},
                                                {"order", "payment.initiated"},
                                                {"order", "payment.refunded"},
                                                {"order", "stock.received"},
                                                {"order", "stock.rejected"},
                                                {"order", "stock.reserved"},
                                                {"payment", "order.cancelled"},
                                                {"payment", "order.pending_payment"},
                                                {"payment", "order.refund_requested"},
                                                {"warehouse", "order.cancelled"},
                                                {"warehouse", "order.paid"},
                                                {"warehouse", "order.pending_payment"}};
  return all;
}

template <class T>
std::string json_event<T>::encode(const T& what) {
  return settle::json_codec<T>::encode(what);
}

template <class T>
T json_event<T>::decode(std::string_view payload) {
  return settle::json_codec<T>::decode(payload);
}

template struct json_event<placement_requested>;
template struct json_event<placement_refused>;
template struct json_event<order_pending_payment>;
template struct json_event<order_paid>;
template struct json_event<order_processing>;
template struct json_event<order_cancelled>;
template struct json_event<refund_requested>;
template struct json_event<payment_initiated>;
template struct json_event<payment_captured>;
template struct json_event<payment_failed>;
template struct json_event<payment_refunded>;
template struct json_event<stock_received>;
template struct json_event<stock_reserved>;
template struct json_event<stock_released>;
template struct json_event<stock_rejected>;

}  // namespace shop

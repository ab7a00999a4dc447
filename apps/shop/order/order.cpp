#include "order/order.hpp"

#include "json.hpp"
#include "settle/http_once.hpp"
#include "settle/publish.hpp"
#include "settle/request_key.hpp"
#include "timer.hpp"

namespace shop {
namespace {

namespace http = settle::http;

std::string body_of(const order_view& what) {
  json_object made;
  made.text("id", what.id);
  made.text("checkout_session_id", what.checkout_session_id);
  made.text("status", what.status);
  if (!what.cancel_reason.empty()) made.text("cancel_reason", what.cancel_reason);
  made.number("total_cents", what.total_cents);
  made.number("captured_cents", what.captured_cents);
  made.number("refunded_cents", what.refunded_cents);
  std::string lines;
  for (const auto& one : what.lines) {
    json_object item;
    item.text("sku", one.sku);
    item.number("quantity", one.quantity);
    item.number("price_cents", one.price_cents);
    lines += (lines.empty() ? "" : ",") + item.done();
  }
  made.raw("lines", "[" + lines + "]");
  return made.done();
}

int status_of(std::string_view refusal) {
  if (refusal == refusals::session_unknown) return 404;
  if (refusal == refusals::idempotency_conflict) return 422;
  return 409;
}

http::response order_unknown(const http::request& asked) {
  return http::problem(404, "order_unknown", "there is no such order", asked.path);
}

}  // namespace

order_service::order_service(const surroundings& with)
    : db_(with.db),
      orders_(with.of),
      listener_(with.db, with.broker,
                listening("order", {std::string(topics::checkout), std::string(topics::payments),
                                    std::string(topics::stock)})),
      expiry_(with.db, orders_) {
  listen();
}

void order_service::listen() {
  using settle::transaction;
  listener_.on<payment_initiated>([this](const auto& e, transaction& tx) { orders_.initiated(tx, e); });
  listener_.on<payment_captured>([this](const auto& e, transaction& tx) { orders_.captured(tx, e); });
  listener_.on<payment_failed>([this](const auto& e, transaction& tx) { orders_.failed(tx, e); });
  listener_.on<payment_refunded>([this](const auto& e, transaction& tx) { orders_.refunded(tx, e); });
  listener_.on<stock_reserved>([this](const auto& e, transaction& tx) { orders_.confirmed(tx, e); });
  listener_.on<stock_rejected>([this](const auto& e, transaction& tx) { orders_.rejected(tx, e); });
  listener_.on<stock_received>([this](const auto& e, transaction& tx) { orders_.received(tx, e); });
  // The same function as POST /orders, under the same two keys: whichever comes first makes the order.
  listener_.on<placement_requested>([this](const placement_requested& e, transaction& tx) {
    const auto done = orders_.place(
        tx, {e.user_id, e.checkout_session_id, e.idempotency_key, e.expected_total_cents, e.payment_method});
    if (done.order_id.empty())
      settle::publish(tx, placement_refused{e.checkout_session_id, e.user_id, done.code});
  });
}

void order_service::add_routes(http::router& to) {
  add_cart_routes(to, db_);
  add_order_routes(to);
}

void order_service::add_order_routes(http::router& to) {
  const http::idempotency policy{
      .service = "shop.orders",
      .caller = user_of,
      .codes = {.in_flight = "order_pending", .reused = std::string(refusals::idempotency_conflict)}};
  to.post(
      "/orders", http::idempotent(db_, policy, [this](const auto& asked, auto& tx) -> http::kept_response {
        const auto given = read_json(asked);
        if (!given.refused.empty()) return {given.problem(asked), settle::keeps::nothing};
        if (given.text("checkout_session_id").empty())
          return {http::problem(400, "invalid_request", "checkout_session_id has to be there", asked.path),
                  settle::keeps::nothing};
        const auto key = settle::parse_request_key(*asked.headers.find("Idempotency-Key"));
        const auto done = orders_.place(tx, {.user_id = *user_of(asked),
                                             .checkout_session_id = given.text("checkout_session_id"),
                                             .idempotency_key = key.key->text(),
                                             .expected_total_cents = given.number("expected_total_cents", -1),
                                             .payment_method = given.text("payment_method", "card")});
        if (done.order_id.empty())
          return {http::problem(status_of(done.code), done.code, done.detail, asked.path),
                  settle::keeps::everything};
        auto made = http::text(done.repeated ? 200 : 201, "application/json",
                               body_of(*orders_.find(tx, done.order_id)));
        made.headers.set("Location", "/orders/" + done.order_id);
        return made;
      }));
  to.get("/orders/{id}", [this](const http::request& asked) {
    const auto user = user_of(asked);
    if (!user) return who_are_you(asked);
    auto tx = db_.read();
    const auto found = orders_.find(tx, std::string(asked.parameter("id")));
    if (!found || found->user_id != *user) return order_unknown(asked);  // not even that it is there
    return http::text(200, "application/json", body_of(*found));
  });
  to.post("/orders/{id}/cancel", [this](const http::request& asked) {
    const auto user = user_of(asked);
    if (!user) return who_are_you(asked);
    auto tx = db_.begin(asked.cancelled);
    const std::string id(asked.parameter("id"));
    const auto found = orders_.find(tx, id);
    if (!found || found->user_id != *user) return order_unknown(asked);
    const auto done = orders_.cancel(tx, id, "cancelled_by_buyer", *user);
    if (!done.in_place())
      return http::problem(409, "order_not_cancellable", "the order is " + done.state, asked.path);
    auto made = http::text(200, "application/json", body_of(*orders_.find(tx, id)));
    tx.commit("shop.cancel");
    return made;
  });
}

order_expiry::order_expiry(settle::database& db, const orders& of)
    : db_(db), orders_(of), timer_(std::make_unique<timer>()) {}

bool order_expiry::run_once(std::stop_token cancel) {
  constexpr std::int64_t batch = 50;
  std::vector<std::string> due;
  {
    auto tx = db_.read();
    const auto found = tx.execute(
        "select id from orders where status in ('PENDING_PAYMENT', 'PAYMENT_INITIATED') and pay_until < $1 "
        "order by pay_until limit $2",
        {env().now(), batch});
    for (std::size_t i = 0; i < found.size(); ++i) due.push_back(found[i][0].text());
  }
  bool any = false;
  for (const auto& id : due) {
    auto tx = db_.begin(cancel);
    any = orders_.cancel_unpaid(tx, id) || any;
    tx.commit("shop.expire");
  }
  return any;
}

}  // namespace shop

#include "payment/payment.hpp"

#include "json.hpp"
#include "settle/http_once.hpp"

namespace shop {
namespace {

namespace http = settle::http;
namespace webhook = settle::webhook;

webhook::source gateway_source(const config& of) {
  return {.name = "gateway",
          .signature = webhook_signing(of),
          .event_id = webhook::in_json{"gateway_transaction_id"},
          .type = webhook::in_json{"type"},
          .key = webhook::in_json{"order_id"}};
}

gateway_notice notice_in(std::string_view body) {
  const auto told = read_json(body);
  const auto type = told.text("type");
  return {.gateway_transaction_id = told.text("gateway_transaction_id"),
          .order_id = told.text("order_id"),
          .kind = type == "charge.captured" ? "captured"
                  : type == "charge.failed" ? "failed"
                                            : "",
          .amount_cents = told.number("amount_cents"),
          .reason = told.text("reason")};
}

http::response nothing_more(int status) {
  http::response made{.status = status};
  if (status == 503) made.headers.set("Retry-After", "1");
  return made;
}

std::string body_of(const payment_view& what) {
  json_object made;
  made.text("order_id", what.order_id);
  made.text("status", what.status);
  made.text("gateway_transaction_id", what.gateway_transaction_id);
  made.number("amount_cents", what.amount_cents);
  made.number("captured_cents", what.captured_cents);
  made.number("refunded_cents", what.refunded_cents);
  return made.done();
}

}  // namespace

webhook::signing webhook_signing(const config& of) {
  return {.how = webhook::scheme::stripe, .keys = {of.webhook_secret}};
}

payment_service::payment_service(const surroundings& with)
    : db_(with.db),
      listener_(with.db, with.broker, listening("payment", {std::string(topics::orders)})),
      caller_(with.db, payments_, [of = with.of] { return port_of(of, "gateway"); }),
      locks_(with.db),
      verifier_(webhook_signing(with.of)),
      inbox_(gateway_source(with.of)) {
  using settle::transaction;
  listener_.on<order_pending_payment>([this](const auto& e, transaction& tx) { payments_.initiate(tx, e); });
  listener_.on<order_cancelled>([this](const auto& e, transaction& tx) { payments_.cancel(tx, e); });
  listener_.on<refund_requested>([this](const refund_requested& e, transaction& tx) {
    payments_.refund(tx, e.refund_request_id, e.order_id, e.amount_cents);
  });
}

http::response payment_service::hear(const http::request& asked) {
  webhook::request told{.body = asked.body};
  for (const auto one : asked.headers) told.headers.push_back({one.name, one.value});
  // Before anything else: a stranger must not take locks in somebody's name.
  if (!verifier_.check(told, db_.env().now()).accepted()) return nothing_more(401);
  const auto about = notice_in(asked.body);
  if (about.gateway_transaction_id.empty()) return nothing_more(400);

  // Copies come at the same time. One works; the others wait for it and find that all is done.
  const auto name = "payment_webhook:" + about.gateway_transaction_id;
  auto lock =
      locks_.acquire(name, std::chrono::seconds(5), {.ttl = std::chrono::seconds(30)}, asked.cancelled);
  if (!lock) return nothing_more(503);
  auto tx = db_.begin(asked.cancelled);
  settle::fenced(tx, *lock);
  const auto decided =
      inbox_.apply(tx, told, [this](const webhook::received& event, settle::transaction& in) {
        const auto notice = notice_in(event.body);
        if (notice.kind.empty()) return webhook::answer::ignore;
        payments_.note(in, notice);
        return webhook::answer::done;
      });
  tx.commit("shop.webhook");
  return nothing_more(decided.status);
}

http::response payment_service::refund(const http::request& asked, settle::transaction& tx) const {
  const auto given = read_json(asked);
  if (!given.refused.empty()) return given.problem(asked);
  const auto amount = given.number("amount_cents");
  if (amount < 1)
    return http::problem(400, "invalid_request", "amount_cents has to be above zero", asked.path);
  const auto id = given.text("refund_request_id");
  const auto done = payments_.refund(tx, id, std::string(asked.parameter("order")), amount);
  if (done.outcome == refund_result::unknown_payment)
    return http::problem(404, "payment_unknown", "there is no such payment", asked.path);
  if (done.outcome == refund_result::above_capture)
    return http::problem(409, "refund_above_capture",
                         "only " + std::to_string(done.refundable_cents) + " of it are left", asked.path);
  json_object made;
  made.text("refund_request_id", id);
  made.number("amount_cents", done.amount_cents);
  return http::text(202, "application/json", made.done());
}

void payment_service::add_routes(http::router& to) {
  to.post("/webhooks/payment", [this](const http::request& asked) {
    try {
      return hear(asked);
    } catch (const settle::handler_failed&) {
      return nothing_more(503);  // too early: its payment is not here yet, and the gateway tells it again
    }
  });
  to.get("/payments/{order}", [this](const http::request& asked) {
    auto tx = db_.read();
    const auto found = payments_.find(tx, std::string(asked.parameter("order")));
    if (!found) return http::problem(404, "payment_unknown", "there is no such payment", asked.path);
    return http::text(200, "application/json", body_of(*found));
  });
  // For customer service: X-User is the agent.
  const http::idempotency policy{
      .service = "shop.refunds", .caller = user_of, .key_field = "refund_request_id"};
  to.post("/payments/{order}/refunds",
          http::idempotent(db_, policy, [this](const auto& asked, auto& tx) { return refund(asked, tx); }));
}

}  // namespace shop

// What becomes of an order after it was placed.
#include "order/orders.hpp"

#include "settle/failure.hpp"
#include "settle/publish.hpp"

namespace shop {
namespace {

settle::guard_options machine() {
  return {
      .machine = "order",
      .table = "orders",
      .column = "status",
      .states = {"PENDING_PAYMENT", "PAYMENT_INITIATED", "PAID", "STOCK_CONFIRMED", "PROCESSING",
                 "CANCELLED"},
      .initial = {"PENDING_PAYMENT"},
      .ends = {"CANCELLED"},
      .transitions = {{"PENDING_PAYMENT", "PAYMENT_INITIATED"},
                      {"PENDING_PAYMENT", "PAID"},  // the capture may overtake the note that it was asked for
                      {"PAYMENT_INITIATED", "PAID"},
                      {"PAID", "STOCK_CONFIRMED"},
                      {"STOCK_CONFIRMED", "PROCESSING"},
                      {"PENDING_PAYMENT", "CANCELLED"},
                      {"PAYMENT_INITIATED", "CANCELLED"},
                      {"PAID", "CANCELLED"},
                      {"STOCK_CONFIRMED", "CANCELLED"},
                      {"PROCESSING", "CANCELLED"}}};
}

// An event about an order that is not there: nothing that time mends.
[[noreturn]] void refuse_unknown(const std::string& id) {
  throw settle::handler_failed(settle::failure_class::permanent, "there is no order " + id);
}

std::vector<line> lines_of(settle::transaction& tx, const std::string& id) {
  const auto found =
      tx.execute("select sku, quantity, price_cents from order_items where order_id = $1 order by sku", {id});
  std::vector<line> all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all.push_back({found[i][0].text(), found[i][1].integer(), found[i][2].integer()});
  return all;
}

}  // namespace

orders::orders(const config& of)
    : payment_window_(of.payment_window),
      machine_(shop::machine()),
      stock_({.resource = "sellable", .table = "products", .key = "sku", .column = "in_stock"}) {}

std::optional<order_view> orders::find(settle::transaction& tx, const std::string& id) const {
  const auto found = tx.execute(
      "select user_id, checkout_session_id, status, cancel_reason, total_cents, captured_cents, "
      "refunded_cents "
      "from orders where id = $1",
      {id});
  if (found.empty()) return std::nullopt;
  const auto row = found[0];
  return order_view{.id = id,
                    .user_id = row[0].text(),
                    .checkout_session_id = row[1].text(),
                    .status = row[2].text(),
                    .cancel_reason = row[3].text(),
                    .total_cents = row[4].integer(),
                    .captured_cents = row[5].integer(),
                    .refunded_cents = row[6].integer(),
                    .lines = lines_of(tx, id)};
}

void orders::initiated(settle::transaction& tx, const payment_initiated& what) const {
  // A conflict is fine: it was paid or cancelled meanwhile.
  machine_.move(tx, what.order_id, "PAYMENT_INITIATED", {.actor = "payment"});
}

void orders::captured(settle::transaction& tx, const payment_captured& what) const {
  const auto found = tx.execute(
      "update orders set captured_cents = captured_cents + $2 where id = $1 "
      "returning total_cents, captured_cents, user_id, status",
      {what.order_id, what.amount_cents});
  if (found.empty()) refuse_unknown(what.order_id);
  const auto total = found[0][0].integer();
  if (found[0][1].integer() != total && found[0][3].text() != "CANCELLED") {
    cancel(tx, what.order_id, "amount_mismatch", "payment");
    return;
  }
  const auto done = machine_.move(tx, what.order_id, "PAID", {.actor = "payment"});
  if (done.outcome == settle::move_outcome::moved)
    settle::publish(tx, order_paid{.order_id = what.order_id,
                                   .user_id = found[0][2].text(),
                                   .total_cents = total,
                                   .lines = lines_of(tx, what.order_id)});
  else if (done.state == "CANCELLED")
    ask_for_refund(tx, what.order_id, "captured_after_cancellation");
}

void orders::failed(settle::transaction& tx, const payment_failed& what) const {
  const auto found = find(tx, what.order_id);
  if (!found) refuse_unknown(what.order_id);
  // One failed attempt after a capture says nothing about the money that is here.
  if (found->captured_cents == 0) cancel(tx, what.order_id, "payment_failed", "payment");
}

void orders::refunded(settle::transaction& tx, const payment_refunded& what) const {
  tx.execute("update orders set refunded_cents = refunded_cents + $2 where id = $1",
             {what.order_id, what.amount_cents});
}

void orders::confirmed(settle::transaction& tx, const stock_reserved& what) const {
  const auto confirmed = machine_.move(tx, what.order_id, "STOCK_CONFIRMED", {.actor = "warehouse"});
  if (confirmed.outcome != settle::move_outcome::moved) return;  // cancelled meanwhile, or a repetition
  machine_.move(tx, what.order_id, "PROCESSING", {.actor = "order"});
  const auto found = find(tx, what.order_id);
  settle::publish(tx, order_processing{.order_id = what.order_id, .user_id = found->user_id});
}

void orders::rejected(settle::transaction& tx, const stock_rejected& what) const {
  cancel(tx, what.order_id, what.reason, "warehouse");
}

void orders::received(settle::transaction& tx, const stock_received& what) const {
  const auto added =
      stock_.add(tx, what.sku, what.quantity, {.reason = "received", .reference = what.receipt_id});
  if (!added)  // the product will be listed
    throw settle::handler_failed(settle::failure_class::transient, "there is no product " + what.sku);
  tx.execute("update products set received = received + $2 where sku = $1", {what.sku, what.quantity});
}

settle::move_result orders::cancel(settle::transaction& tx, const std::string& id, const std::string& reason,
                                   const std::string& actor) const {
  const auto done = machine_.move(tx, id, "CANCELLED",
                                  {.actor = actor, .reason = reason, .set = {{"cancel_reason", reason}}});
  if (done.outcome != settle::move_outcome::moved) return done;
  const auto found = find(tx, id);
  for (const auto& one : found->lines) {
    stock_.add(tx, one.sku, one.quantity, {.reason = "cancelled", .reference = id});
    tx.execute("update products set sales = sales - $2 where sku = $1", {one.sku, one.quantity});
  }
  settle::publish(
      tx,
      order_cancelled{.order_id = id, .user_id = found->user_id, .reason = reason, .lines = found->lines});
  if (found->captured_cents > found->refunded_cents) ask_for_refund(tx, id, reason);
  return done;
}

bool orders::cancel_unpaid(settle::transaction& tx, const std::string& id) const {
  // The lock decides between this and a capture that arrives now.
  const auto unpaid = tx.execute(
      "update orders set cancel_reason = cancel_reason where id = $1 and captured_cents = 0 returning id",
      {id});
  if (unpaid.empty()) return false;
  return cancel(tx, id, "payment_expired", "order").outcome == settle::move_outcome::moved;
}

// One request per amount that has come in: a second capture of a cancelled order gets a refund of its own.
void orders::ask_for_refund(settle::transaction& tx, const std::string& id, const std::string& reason) const {
  const auto found = find(tx, id);
  settle::publish(tx, refund_requested{.refund_request_id = id + ":" + std::to_string(found->captured_cents),
                                       .order_id = id,
                                       .amount_cents = 0,
                                       .reason = reason});
}

}  // namespace shop

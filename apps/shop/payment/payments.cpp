#include "payment/payments.hpp"

#include "settle/failure.hpp"
#include "settle/publish.hpp"

namespace shop {
namespace {

void intend(settle::transaction& tx, const gateway_call& what) {
  tx.execute(
      "insert into gateway_calls (id, kind, order_id, method, amount_cents, next_at) "
      "values ($1, $2, $3, $4, $5, $6) on conflict do nothing",
      {what.id, what.kind, what.order_id, what.method, what.amount_cents, tx.env().now()});
}

}  // namespace

payments::payments()
    : refundable_(
          {.resource = "refundable", .table = "payments", .key = "order_id", .column = "refundable_cents"}) {}

void payments::initiate(settle::transaction& tx, const order_pending_payment& what) const {
  const auto mine = tx.execute(
      "insert into payments (order_id, user_id, amount_cents, method, status) "
      "values ($1, $2, $3, $4, 'PAYMENT_INITIATED') on conflict do nothing returning order_id",
      {what.order_id, what.user_id, what.total_cents, what.payment_method});
  if (mine.empty()) return;  // known, or cancelled before it was heard of
  intend(tx, {.id = "charge:" + what.order_id,
              .kind = "charge",
              .order_id = what.order_id,
              .method = what.payment_method,
              .amount_cents = what.total_cents});
  settle::publish(tx, payment_initiated{what.order_id});
}

void payments::cancel(settle::transaction& tx, const order_cancelled& what) const {
  // Nobody has heard of the order yet: the row keeps it from being charged later.
  tx.execute(
      "insert into payments (order_id, user_id, amount_cents, method, status) values ($1, $2, 0, '', "
      "'CANCELLED') "
      "on conflict do nothing",
      {what.order_id, what.user_id});
  const auto open = tx.execute(
      "update payments set status = 'CANCELLED' where order_id = $1 and status = 'PAYMENT_INITIATED' "
      "returning order_id",
      {what.order_id});
  if (open.empty()) return;
  // Never sent: it will not be. Else the gateway is told to let it be; if it has captured already, that comes
  // as a webhook, and goes back as a refund.
  const auto unsent = tx.execute(
      "update gateway_calls set status = 'NOT_NEEDED' where id = $1 and status = 'WAITING' and attempts = 0 "
      "returning id",
      {"charge:" + what.order_id});
  if (unsent.empty())
    intend(tx, {.id = "void:" + what.order_id, .kind = "void", .order_id = what.order_id, .method = ""});
}

bool payments::note(settle::transaction& tx, const gateway_notice& what) const {
  const auto mine = tx.execute(
      "insert into payment_events (gateway_txn_id, order_id, kind, amount_cents, received_at) "
      "values ($1, $2, $3, $4, $5) on conflict do nothing returning gateway_txn_id",
      {what.gateway_transaction_id, what.order_id, what.kind, what.amount_cents, tx.env().now()});
  if (mine.empty()) return false;
  if (what.kind == "failed") {
    tx.execute("update payments set status = 'FAILED' where order_id = $1 and status = 'PAYMENT_INITIATED'",
               {what.order_id});
    settle::publish(tx, payment_failed{what.order_id, what.gateway_transaction_id, what.reason});
    return true;
  }
  const auto known = tx.execute(
      "update payments set status = 'CAPTURED', gateway_txn_id = $2, captured_cents = captured_cents + $3 "
      "where order_id = $1 returning order_id",
      {what.order_id, what.gateway_transaction_id, what.amount_cents});
  if (known.empty())  // the gateway answers faster than we write: it will tell it again
    throw settle::handler_failed(settle::failure_class::transient, "there is no payment of " + what.order_id);
  refundable_.add(tx, what.order_id, what.amount_cents,
                  {.reason = "captured", .reference = what.gateway_transaction_id});
  settle::publish(tx, payment_captured{what.order_id, what.gateway_transaction_id, what.amount_cents});
  return true;
}

refund_result payments::refund(settle::transaction& tx, const std::string& refund_request_id,
                               const std::string& order_id, std::int64_t amount_cents) const {
  const auto mine = tx.execute(
      "insert into refunds (refund_request_id, order_id, amount_cents, status, requested_at) "
      "values ($1, $2, 0, 'REQUESTED', $3) on conflict do nothing returning refund_request_id",
      {refund_request_id, order_id, tx.env().now()});
  if (mine.empty()) {
    const auto known =
        tx.execute("select amount_cents from refunds where refund_request_id = $1", {refund_request_id});
    return {.outcome = refund_result::repeated, .amount_cents = known[0][0].integer()};
  }
  const settle::quantity_note note{.reason = "refund", .reference = refund_request_id};
  constexpr std::int64_t everything = std::int64_t{1} << 60;
  auto got = refundable_.take(tx, order_id, amount_cents == 0 ? everything : amount_cents, note);
  // Too much says how much there is, and keeps it for this transaction.
  if (amount_cents == 0 && got.outcome == settle::take_outcome::insufficient && got.there > 0) {
    amount_cents = got.there;
    got = refundable_.take(tx, order_id, amount_cents, note);
  }
  if (!got) {
    tx.execute("delete from refunds where refund_request_id = $1", {refund_request_id});
    const bool known = got.outcome != settle::take_outcome::missing;
    return {.outcome = known ? refund_result::above_capture : refund_result::unknown_payment,
            .refundable_cents = got.there};
  }
  tx.execute("update refunds set amount_cents = $2 where refund_request_id = $1",
             {refund_request_id, amount_cents});
  intend(tx, {.id = "refund:" + refund_request_id,
              .kind = "refund",
              .order_id = order_id,
              .method = "",
              .amount_cents = amount_cents});
  return {.amount_cents = amount_cents};
}

void payments::done(settle::transaction& tx, const gateway_call& what) const {
  const auto first = tx.execute(
      "update gateway_calls set status = 'DONE', last_error = '' where id = $1 and status = 'WAITING' "
      "returning id",
      {what.id});
  if (first.empty() || what.kind != "refund") return;
  const auto request = what.id.substr(std::string_view("refund:").size());
  tx.execute("update refunds set status = 'DONE' where refund_request_id = $1", {request});
  const auto of = tx.execute(
      "update payments set refunded_cents = refunded_cents + $2 where order_id = $1 returning user_id",
      {what.order_id, what.amount_cents});
  settle::publish(tx, payment_refunded{what.order_id, of[0][0].text(), request, what.amount_cents});
}

std::optional<payment_view> payments::find(settle::transaction& tx, const std::string& order_id) const {
  const auto found = tx.execute(
      "select status, gateway_txn_id, amount_cents, captured_cents, refunded_cents from payments "
      "where order_id = $1",
      {order_id});
  if (found.empty()) return std::nullopt;
  const auto row = found[0];
  return payment_view{.order_id = order_id,
                      .status = row[0].text(),
                      .gateway_transaction_id = row[1].text(),
                      .amount_cents = row[2].integer(),
                      .captured_cents = row[3].integer(),
                      .refunded_cents = row[4].integer()};
}

}  // namespace shop

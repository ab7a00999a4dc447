// Orders and their money: what the orders say, what the payment service says, and what the gateway has really
// taken.
#include "audit/parts.hpp"

namespace shop {
namespace {

// Per order what the gateway has taken and kept.
std::map<std::string, std::int64_t> kept_by_gateway(const audited& all) {
  auto tx = all.gateway.read();
  return by_text(tx, "select order_id, cast(sum(cents) as bigint) from money group by order_id");
}

std::int64_t amount_in(const std::map<std::string, std::int64_t>& all, const std::string& order) {
  const auto found = all.find(order);
  return found == all.end() ? 0 : found->second;
}

std::int64_t sum_of(const std::map<std::string, std::int64_t>& all) {
  std::int64_t sum = 0;
  for (const auto& [order, cents] : all) sum += cents;
  return sum;
}

void compare(finding& into, const std::string& who, const std::map<std::string, std::int64_t>& said,
             const std::map<std::string, std::int64_t>& kept) {
  auto both = said;
  both.insert(kept.begin(), kept.end());
  for (const auto& [order, ignored] : both) {
    const auto says = amount_in(said, order), has = amount_in(kept, order);
    if (says != has)
      into.breach("order " + order + ": " + who + " " + std::to_string(says) + " cents, the gateway has " +
                  std::to_string(has));
  }
}

}  // namespace

audit_check one_order_per_session(const audited& all) {
  finding made("one_order_per_session");
  auto tx = all.order.read();
  made.breaches(tx,
                "select 'session ' || checkout_session_id || ' has ' || count(*) || ' orders' from orders "
                "group by checkout_session_id having count(*) > 1");
  return made.done(std::to_string(count(tx, "select count(distinct checkout_session_id) from orders")) +
                   " sessions with an order each");
}

audit_check one_order_per_key(const audited& all) {
  finding made("one_order_per_key");
  auto tx = all.order.read();
  made.breaches(tx,
                "select 'key ' || idempotency_key || ' of ' || user_id || ' has ' || count(*) || ' orders' "
                "from orders group by user_id, idempotency_key having count(*) > 1");
  return made.done(std::to_string(count(tx, "select count(*) from orders")) + " orders, each with its key");
}

audit_check one_charge_per_order(const audited& all) {
  finding made("one_charge_per_order");
  auto tx = all.gateway.read();
  made.breaches(tx,
                "select 'order ' || order_id || ' was charged ' || count(*) || ' times' from money "
                "where cents > 0 group by order_id having count(*) > 1");
  const auto asked = count(tx, "select cast(sum(requests) as bigint) from charges where amount_cents > 0");
  return made.done(std::to_string(count(tx, "select count(*) from money where cents > 0")) +
                   " charges by the gateway's own count, asked for " + std::to_string(asked) + " times");
}

audit_check money_adds_up(const audited& all) {
  finding made("money_adds_up");
  const auto kept = kept_by_gateway(all);
  static constexpr std::string_view said_by = "captured_cents - refunded_cents from ";
  {
    auto tx = all.order.read();
    compare(made, "its row says", by_text(tx, "select id, " + std::string(said_by) + "orders"), kept);
  }
  auto tx = all.payment.read();
  compare(made, "the payment says", by_text(tx, "select order_id, " + std::string(said_by) + "payments"),
          kept);
  return made.done(std::to_string(sum_of(kept)) +
                   " cents kept by the gateway, and so say orders and payments");
}

audit_check money_fits_the_orders(const audited& all) {
  finding made("money_fits_the_orders");
  auto tx = all.order.read();
  made.breaches(
      tx,
      "select 'order ' || id || ' is ' || status || ', and ' || (captured_cents - refunded_cents) || "
      "' of ' || total_cents || ' cents are here' from orders where "
      "(status = 'CANCELLED' and captured_cents <> refunded_cents) or "
      "(status in ('PAID', 'STOCK_CONFIRMED', 'PROCESSING') and captured_cents <> total_cents) or "
      "(status in ('PENDING_PAYMENT', 'PAYMENT_INITIATED') and captured_cents <> 0)");
  made.breaches(tx,
                "select 'order ' || o.id || ' is ' || o.total_cents || ' cents, its lines are ' || "
                "sum(i.quantity * i.price_cents) from orders o join order_items i on i.order_id = o.id "
                "group by o.id, o.total_cents having sum(i.quantity * i.price_cents) <> o.total_cents");
  return made.done(std::to_string(count(tx, "select count(*) from orders where status = 'PROCESSING'")) +
                   " orders paid and under way, " +
                   std::to_string(count(tx, "select count(*) from orders where status = 'CANCELLED'")) +
                   " cancelled, of which " +
                   std::to_string(count(
                       tx, "select count(*) from orders where status = 'CANCELLED' and captured_cents > 0")) +
                   " had to be refunded");
}

audit_check refunds_stay_below_captures(const audited& all) {
  finding made("refunds_stay_below_captures");
  {
    auto tx = all.gateway.read();
    made.breaches(
        tx,
        "select 'order ' || order_id || ' got back ' || -sum(cents) || ' cents more than was taken' "
        "from money group by order_id having sum(cents) < 0");
  }
  auto tx = all.payment.read();
  made.breaches(
      tx,
      "select 'order ' || p.order_id || ': ' || p.captured_cents || ' captured, ' || "
      "sum(r.amount_cents) || ' asked back' from payments p join refunds r on r.order_id = p.order_id "
      "group by p.order_id, p.captured_cents having sum(r.amount_cents) > p.captured_cents");
  return made.done(std::to_string(count(tx, "select count(*) from refunds")) +
                   " refunds, none above its capture");
}

}  // namespace shop

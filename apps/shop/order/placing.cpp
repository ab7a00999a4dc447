// Placing an order: seed 004's one transaction.
#include "order/orders.hpp"
#include "settle/publish.hpp"

namespace shop {
namespace {

struct cart_line {
  line what;
  std::int64_t price_seen = 0;
};

// Locks the cart until the transaction ends, so that nothing is put into it between reading and clearing.
std::vector<cart_line> take_cart(settle::transaction& tx, const std::string& user) {
  tx.execute("update carts set version = version + 1 where user_id = $1", {user});
  const auto found = tx.execute(
      "select c.sku, c.quantity, c.price_cents, p.price_cents from cart_items c "
      "join products p on p.sku = c.sku where c.user_id = $1 order by c.sku",
      {user});
  std::vector<cart_line> all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all.push_back(
        {{found[i][0].text(), found[i][1].integer(), found[i][3].integer()}, found[i][2].integer()});
  return all;
}

std::int64_t total_of(const std::vector<line>& lines) {
  std::int64_t total = 0;
  for (const auto& one : lines) total += one.quantity * one.price_cents;
  return total;
}

// What the buyer has to look at again before he buys; empty: nothing.
std::string price_change(const std::vector<cart_line>& cart, std::int64_t total, std::int64_t expected) {
  for (const auto& one : cart)
    if (one.price_seen != one.what.price_cents)
      return one.what.sku + " is " + std::to_string(one.what.price_cents) + " now, not " +
             std::to_string(one.price_seen);
  if (expected >= 0 && expected != total)
    return "the total is " + std::to_string(total) + " now, not " + std::to_string(expected);
  return {};
}

std::string missing_lines(const std::vector<line>& lines, const settle::basket_result& got) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!got.lines[i])
      text += (text.empty() ? "" : ", ") + std::string("only ") + std::to_string(got.lines[i].there) +
              " of " + lines[i].sku + " left";
  return text;
}

}  // namespace

placed orders::place(settle::transaction& tx, const placement& what) const {
  // The conflicting write comes first: whoever places the same session at the same time waits here, and is
  // then told what has become of it.
  const auto mine = tx.execute(
      "insert into placements (checkout_session_id, user_id, idempotency_key) values ($1, $2, $3) "
      "on conflict do nothing returning checkout_session_id",
      {what.checkout_session_id, what.user_id, what.idempotency_key});
  if (mine.empty()) return existing(tx, what);

  const auto cart = take_cart(tx, what.user_id);
  if (cart.empty()) return refuse(tx, what, refusals::cart_empty, "there is nothing in the cart");
  std::vector<line> lines;
  std::vector<settle::quantity_line> wanted;
  for (const auto& one : cart) {
    lines.push_back(one.what);
    wanted.push_back({one.what.sku, one.what.quantity});
  }
  const auto change = price_change(cart, total_of(lines), what.expected_total_cents);
  if (!change.empty()) return refuse(tx, what, refusals::price_changed, change);
  const auto id = tx.env().ids->next().text();
  const auto got = stock_.take_all(tx, wanted, {.reason = "ordered", .reference = id});
  if (!got) return refuse(tx, what, refusals::insufficient_stock, missing_lines(lines, got));
  fill(tx, what, id, lines);
  return {.order_id = id};
}

// Nothing was taken and nothing ordered. The session is over: a new attempt is a new one.
placed orders::refuse(settle::transaction& tx, const placement& what, std::string_view code,
                      std::string detail) const {
  tx.execute("update placements set refusal = $2, detail = $3 where checkout_session_id = $1",
             {what.checkout_session_id, code, detail});
  return {.code = std::string(code), .detail = std::move(detail)};
}

// Nobody waits for these one by one: they travel with the commit.
void orders::fill(settle::transaction& tx, const placement& what, const std::string& id,
                  const std::vector<line>& lines) const {
  static constexpr std::string_view add_order =
      "insert into orders (id, user_id, checkout_session_id, idempotency_key, payment_method, status, "
      "total_cents, created_at, pay_until) values ($1, $2, $3, $4, $5, 'PENDING_PAYMENT', $6, $7, $8)";
  static constexpr std::string_view note_order =
      "update placements set order_id = $2 where checkout_session_id = $1";
  static constexpr std::string_view add_item =
      "insert into order_items (order_id, sku, quantity, price_cents) values ($1, $2, $3, $4)";
  static constexpr std::string_view add_sales = "update products set sales = sales + $2 where sku = $1";
  static constexpr std::string_view clear_cart = "delete from cart_items where user_id = $1";
  const auto now = tx.env().now();
  const auto pay_until = (now + payment_window_).time_since_epoch().count();
  const auto total = total_of(lines);
  tx.post({"shop.add_order", add_order, add_order},
          {id, what.user_id, what.checkout_session_id, what.idempotency_key, what.payment_method, total, now,
           pay_until});
  tx.post({"shop.note_order", note_order, note_order}, {what.checkout_session_id, id});
  for (const auto& one : lines) {
    tx.post({"shop.add_item", add_item, add_item}, {id, one.sku, one.quantity, one.price_cents});
    tx.post({"shop.add_sales", add_sales, add_sales}, {one.sku, one.quantity});
  }
  tx.post({"shop.clear_cart", clear_cart, clear_cart}, {what.user_id});
  settle::publish(tx, order_pending_payment{.order_id = id,
                                            .user_id = what.user_id,
                                            .checkout_session_id = what.checkout_session_id,
                                            .payment_method = what.payment_method,
                                            .total_cents = total,
                                            .pay_until_us = pay_until,
                                            .lines = lines});
}

// Of whoever was first with this session or this key.
placed orders::existing(settle::transaction& tx, const placement& what) const {
  const auto found =
      tx.execute("select user_id, order_id, refusal, detail from placements where checkout_session_id = $1",
                 {what.checkout_session_id});
  if (found.empty())
    return {.repeated = true,
            .code = std::string(refusals::idempotency_conflict),
            .detail = "this Idempotency-Key belongs to another checkout session"};
  if (found[0][0].text() != what.user_id)
    return {.repeated = true,
            .code = std::string(refusals::session_unknown),
            .detail = "there is no such checkout session"};
  return {.order_id = found[0][1].text(),
          .repeated = true,
          .code = found[0][2].text(),
          .detail = found[0][3].text()};
}

}  // namespace shop

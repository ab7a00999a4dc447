#include "json.hpp"
#include "order/order.hpp"

namespace shop {
namespace {

namespace http = settle::http;

constexpr std::int64_t cart_quantity_max = 1000;

http::response invalid(const http::request& asked, std::string_view detail) {
  return http::problem(400, "invalid_request", detail, asked.path);
}

http::response list_products(settle::database& db) {
  auto tx = db.read();
  const auto found =
      tx.execute("select sku, name, price_cents, in_stock from products order by sku limit 1000");
  std::string all;
  for (std::size_t i = 0; i < found.size(); ++i) {
    json_object one;
    one.text("sku", found[i][0].text());
    one.text("name", found[i][1].text());
    one.number("price_cents", found[i][2].integer());
    one.number("in_stock", found[i][3].integer());
    all += (all.empty() ? "" : ",") + one.done();
  }
  return http::text(200, "application/json", "[" + all + "]");
}

// How much there is of it is the warehouse's to say.
http::response put_product(settle::database& db, const http::request& asked) {
  const auto given = read_json(asked);
  if (!given.refused.empty()) return given.problem(asked);
  const auto price = given.number("price_cents", -1);
  if (price < 0) return invalid(asked, "price_cents has to be there, and not below zero");
  auto tx = db.begin(asked.cancelled);
  tx.execute(
      "insert into products (sku, name, price_cents) values ($1, $2, $3) "
      "on conflict (sku) do update set name = excluded.name, price_cents = excluded.price_cents",
      {asked.parameter("sku"), given.text("name"), price});
  tx.commit();
  return {.status = 204};
}

std::string cart_of(settle::transaction& tx, const std::string& user) {
  const auto found =
      tx.execute("select sku, quantity, price_cents from cart_items where user_id = $1 order by sku", {user});
  std::string items;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    json_object one;
    one.text("sku", found[i][0].text());
    one.number("quantity", found[i][1].integer());
    one.number("price_cents", found[i][2].integer());
    items += (items.empty() ? "" : ",") + one.done();
    total += found[i][1].integer() * found[i][2].integer();
  }
  json_object made;
  made.raw("items", "[" + items + "]");
  made.number("total_cents", total);
  return made.done();
}

void lock_cart(settle::transaction& tx, const std::string& user) {
  tx.execute(
      "insert into carts (user_id, version) values ($1, 1) "
      "on conflict (user_id) do update set version = carts.version + 1",
      {user});
}

// Puts it in at today's price, which is what the buyer has seen then.
http::response put_item(settle::database& db, const http::request& asked, const std::string& user) {
  const auto given = read_json(asked);
  if (!given.refused.empty()) return given.problem(asked);
  const auto quantity = given.number("quantity");
  if (quantity < 1 || quantity > cart_quantity_max)
    return invalid(asked, "quantity has to be from 1 to 1000");
  auto tx = db.begin(asked.cancelled);
  lock_cart(tx, user);
  const auto put = tx.execute(
      "insert into cart_items (user_id, sku, quantity, price_cents) "
      "select $1, sku, cast($3 as bigint), price_cents from products where sku = $2 "
      "on conflict (user_id, sku) do update set quantity = excluded.quantity, price_cents = "
      "excluded.price_cents",
      {user, asked.parameter("sku"), quantity});
  if (put.affected() == 0)
    return http::problem(404, "product_unknown", "there is no such product", asked.path);
  auto made = http::text(200, "application/json", cart_of(tx, user));
  tx.commit();
  return made;
}

http::response remove_item(settle::database& db, const http::request& asked, const std::string& user) {
  auto tx = db.begin(asked.cancelled);
  lock_cart(tx, user);
  tx.execute("delete from cart_items where user_id = $1 and sku = $2", {user, asked.parameter("sku")});
  auto made = http::text(200, "application/json", cart_of(tx, user));
  tx.commit();
  return made;
}

}  // namespace

void add_cart_routes(http::router& to, settle::database& db) {
  // For those who have said who they are.
  const auto by_user = [](auto what) {
    return [what](const http::request& asked) {
      const auto user = user_of(asked);
      return user ? what(asked, *user) : who_are_you(asked);
    };
  };
  to.get("/products", [&db](const http::request&) { return list_products(db); });
  to.put("/products/{sku}", [&db](const http::request& asked) { return put_product(db, asked); });
  to.get("/cart", by_user([&db](const http::request&, const std::string& user) {
           auto tx = db.read();
           return http::text(200, "application/json", cart_of(tx, user));
         }));
  to.put("/cart/items/{sku}", by_user([&db](const http::request& asked, const std::string& user) {
           return put_item(db, asked, user);
         }));
  to.del("/cart/items/{sku}", by_user([&db](const http::request& asked, const std::string& user) {
           return remove_item(db, asked, user);
         }));
}

}  // namespace shop

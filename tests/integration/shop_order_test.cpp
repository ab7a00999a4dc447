// Seed 004's list of tests and seed 000's double click, on the shop's order service as it runs.
#include "order/order.hpp"
#include "support/shop_world.hpp"

namespace settle {
namespace {

using shop_orders = test::shop_world;

// Proves A2, V1, I3, I5
TEST_P(shop_orders, fifty_posts_with_one_key_make_one_order_and_take_the_stock_once) {
  start();
  put_into_cart("ann", "tea", 2);
  const auto s = session("ann");
  std::atomic<int> made = 0, pending = 0, others = 0;
  {
    std::vector<std::jthread> clicks;
    for (int i = 0; i < 50; ++i)
      clicks.emplace_back([&] {
        const auto answer = ask("order", "POST", "/orders", "ann", order_body(s), "one-key");
        const auto code = shop::read_json(answer.body).text("code");
        ++(answer.status == 201 ? made : code == "order_pending" ? pending : others);
      });
  }
  EXPECT_GE(made, 1);
  EXPECT_EQ(made + pending, 50) << others << " were told something else";
  const auto again = ask("order", "POST", "/orders", "ann", order_body(s), "one-key");
  EXPECT_EQ(again.status, 201);
  EXPECT_TRUE(again.replayed());
  EXPECT_EQ(number("order", "select count(*) from orders"), 1);
  EXPECT_EQ(in_stock("tea"), 8);
  put_into_cart("bob", "tea", 1);
  EXPECT_EQ(ask("order", "POST", "/orders", "bob", order_body(session("bob")), "one-key").status, 201);
  EXPECT_EQ(number("order", "select count(*) from orders"), 2) << "keys of two users never meet";
  expect_clean_end();
}

// Proves A2, C5
TEST_P(shop_orders, a_request_and_an_event_of_one_session_make_one_order) {
  start();
  for (int i = 0; i < 4; ++i) {
    put_into_cart("ann", "tea", 1);
    const auto s = session("ann"), key = "key-" + s;
    const auto place = "/checkouts/" + s + "/place";
    const auto by_event = [&] {
      EXPECT_LT(ask("checkout", "POST", place, "ann", R"({"payment_method":"card:good"})", key).status, 300);
    };
    if (i % 2 == 0) by_event();
    EXPECT_LT(ask("order", "POST", "/orders", "ann", order_body(s), key).status, 300);
    if (i % 2 == 1) by_event();
    EXPECT_TRUE(eventually([&] {
      return shop::read_json(ask("checkout", "GET", "/checkouts/" + s, "ann").body).text("status") ==
             "ORDERED";
    }));
  }
  EXPECT_EQ(number("order", "select count(*) from orders"), 4);
  EXPECT_EQ(in_stock("tea"), 6);
  expect_clean_end();
}

// Proves A2
TEST_P(shop_orders, a_session_that_was_refused_stays_refused_also_by_event) {
  start();
  put_into_cart("ann", "tea", 11);
  const auto s = session("ann");
  EXPECT_EQ(ask("order", "POST", "/orders", "ann", order_body(s), "k").status, 409);
  put_into_cart("ann", "tea", 1);  // the next attempt, with a session of its own
  EXPECT_EQ(ask("checkout", "POST", "/checkouts/" + s + "/place", "ann", "{}", "k").status, 202);
  EXPECT_TRUE(eventually([&] {
    return shop::read_json(ask("checkout", "GET", "/checkouts/" + s, "ann").body).text("code") ==
           "insufficient_stock";
  }));
  EXPECT_EQ(number("order", "select count(*) from orders"), 0);
  EXPECT_EQ(number("order", "select count(*) from cart_items"), 1);
}

// Proves A2, G5, V1
TEST_P(shop_orders, a_refusal_has_its_code_and_leaves_stock_log_cart_and_orders_as_they_were) {
  start();
  const auto post = [&](const std::string& body, const std::string& key) {
    const auto answer = ask("order", "POST", "/orders", "ann", body, key);
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    return shop::read_json(answer.body).text("code");
  };
  EXPECT_EQ(post(order_body(session("ann")), "k1"), "cart_empty");
  put_into_cart("ann", "tea", 11);
  EXPECT_EQ(post(order_body(session("ann")), "k2"), "insufficient_stock");
  EXPECT_EQ(post(order_body(session("ann")), "k2"), "idempotency_conflict")
      << "the key is that of another request";
  put_into_cart("ann", "tea", 2);
  ask("order", "PUT", "/products/tea", "clerk", R"({"name":"tea","price_cents":800})");
  EXPECT_EQ(post(order_body(session("ann")), "k3"), "price_changed");
  put_into_cart("ann", "tea", 2);
  EXPECT_EQ(post(R"({"checkout_session_id":"s","expected_total_cents":1})", "k4"), "price_changed");
  EXPECT_EQ(in_stock("tea"), 10);
  EXPECT_EQ(number("order", "select count(*) from orders"), 0);
  EXPECT_EQ(number("order", "select count(*) from order_items"), 0);
  EXPECT_EQ(number("order", "select sum(sales) from products"), 0);
  EXPECT_EQ(number("order", "select quantity from cart_items"), 2);
  expect_clean_end();
}

// Proves A2
TEST_P(shop_orders, a_buyer_sees_his_own_orders_and_nobody_elses) {
  start();
  const auto id = order();
  EXPECT_EQ(ask("order", "GET", "/orders/" + id, "ann").status, 200);
  EXPECT_EQ(ask("order", "GET", "/orders/" + id, "bob").status, 404);
  EXPECT_EQ(ask("order", "POST", "/orders/" + id + "/cancel", "bob").status, 404);
  EXPECT_EQ(ask("order", "GET", "/orders/" + id, "").status, 401);
  const auto s = text("order", "select checkout_session_id from orders");
  EXPECT_EQ(ask("order", "POST", "/orders", "bob", order_body(s), "bobs").status, 404);
}

INSTANTIATE_TEST_SUITE_P(databases, shop_orders, test::both_databases, test::database_name);

}  // namespace
}  // namespace settle

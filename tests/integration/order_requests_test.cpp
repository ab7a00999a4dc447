// The seed's order service on requests and quantities, and its own list of tests, on both databases: cart,
// stock with its log, orders with their items, and a key per user.
#include <latch>
#include <thread>

#include "settle/error.hpp"
#include "settle/once.hpp"
#include "settle/quantity.hpp"
#include "support/expect_error.hpp"
#include "support/own_tables.hpp"

namespace settle {
namespace {

struct order_requests : test::own_tables {
  void SetUp() override {
    test::own_tables::SetUp();
    if (IsSkipped()) return;
    run("create table products (id bigint primary key, stock bigint not null, sales bigint not null)");
    run("create table carts (buyer text not null, product bigint not null, amount bigint not null)");
    run("create table orders (id text not null, buyer text not null)");
    run("create table order_items (order_id text not null, product bigint not null, amount bigint not null)");
    run("insert into products values (1, 10, 0), (2, 1, 0); insert into carts values ('ann', 1, 3)");
  }

  answer create_order(transaction& tx, const std::string& id) {
    if (inside) inside();
    tx.execute("insert into orders (id, buyer) values ($1, 'ann')", {id});
    const auto cart = tx.execute("select product, amount from carts where buyer = 'ann' order by product");
    for (std::size_t i = 0; i < cart.size(); ++i) {
      const auto product = cart[i][0].integer(), amount = cart[i][1].integer();
      tx.execute("insert into order_items (order_id, product, amount) values ($1, $2, $3)",
                 {id, product, amount});
      if (!stock.take(tx, product, amount, {.reason = "order", .reference = id}))
        return {.status = 409, .body = "insufficient_stock", .keep = keeps::nothing};
      tx.execute("update products set sales = sales + $2 where id = $1", {product, amount});
    }
    tx.execute("delete from carts where buyer = 'ann'");
    if (fails_at_the_end) throw std::runtime_error("the last step has failed");
    return {.status = 201, .body = id};
  }

  once_result order(const std::string& key, const std::string& id) {
    return once(*db, {"orders", "ann", key}, [&](transaction& tx) { return create_order(tx, id); });
  }

  // Everything that an order changes.
  std::string all_tables() {
    std::string text;
    for (const auto* query :
         {"select id || ':' || stock || ':' || sales from products order by id",
          "select buyer || ':' || product || ':' || amount from carts order by product",
          "select id || ':' || buyer from orders order by id",
          "select order_id || ':' || product || ':' || amount from order_items order by order_id, product"}) {
      for (const auto& row : rows(query)) text += row + " ";
      text += "| ";
    }
    for (const auto& row : rows("select item || ':' || change || ':' || after from " + table("quantity_log")))
      text += row + " ";
    return text + "| " + std::to_string(number("select count(*) from " + table("idempotency_keys")));
  }

  const std::string untouched = "1:10:0 2:1:0 | ann:1:3 | | | | 0";
  const quantity stock{{.resource = "stock", .table = "products", .column = "stock"}};
  std::function<void()> inside;
  bool fails_at_the_end = false;
};

// The seed's first test. Proves V1, I1, I5
TEST_P(order_requests, the_same_key_gets_the_same_order_and_adjusts_the_stock_once) {
  EXPECT_EQ(all_tables(), untouched);
  EXPECT_EQ(order("k", "o-1").outcome, once_outcome::executed);
  const auto after = all_tables();
  EXPECT_EQ(after, "1:7:3 2:1:0 | | o-1:ann | o-1:1:3 | 1:-3:7 | 1");
  const auto again = order("k", "o-2");
  EXPECT_EQ(again.outcome, once_outcome::replayed);
  EXPECT_EQ(again.what.body, "o-1");
  EXPECT_EQ(all_tables(), after);
}

// The seed's second test. Proves V1, I1, I5
TEST_P(order_requests, a_key_whose_order_is_pending_is_a_conflict) {
  std::latch begun(1), asked(1);
  inside = [&] {
    begun.count_down();
    asked.wait();
  };
  std::jthread first([&] { EXPECT_EQ(order("k", "o-1").outcome, once_outcome::executed); });
  begun.wait();
  EXPECT_EQ(order("k", "o-2").outcome, once_outcome::in_flight);
  asked.count_down();
  first.join();
  EXPECT_EQ(number("select count(*) from orders"), 1);
}

// The seed's third test. Proves V1, I5, G5
TEST_P(order_requests, stock_that_does_not_suffice_rolls_back_order_and_items) {
  run("insert into carts values ('ann', 2, 2)");
  const auto before = all_tables();
  const auto refused = order("k", "o-1");
  EXPECT_EQ(refused.what.body, "insufficient_stock");
  EXPECT_EQ(all_tables(), before) << "also what was taken of the first product";
  run("update products set stock = 2 where id = 2");
  EXPECT_EQ(order("k", "o-1").what.status, 201) << "the key is free";
  EXPECT_EQ(all_tables(), "1:7:3 2:0:2 | | o-1:ann | o-1:1:3 o-1:2:2 | 1:-3:7 2:-2:0 | 1");
}

// The seed's test of transactions. Proves V1, I5, I7
TEST_P(order_requests, that_fail_at_the_end_leave_log_cart_and_orders_as_they_were) {
  fails_at_the_end = true;
  EXPECT_THROW(order("k", "o-1"), std::runtime_error);
  EXPECT_EQ(all_tables(), untouched);
  fails_at_the_end = false;
  EXPECT_EQ(order("k", "o-1").outcome, once_outcome::executed);
}

// The unique index of the seed's table. Proves V1, I4
TEST_P(order_requests, have_a_table_that_refuses_a_second_record_of_one_key_itself) {
  order("k", "o-1");
  const auto keys = table("idempotency_keys");
  const auto copy = [&] { run("insert into " + keys + " select * from " + keys); };
  EXPECT_EQ(test::code_of(copy), errc::constraint_violated);
  EXPECT_EQ(number("select count(*) from " + keys), 1);
}

INSTANTIATE_TEST_SUITE_P(databases, order_requests, test::both_databases, test::database_name);

}  // namespace
}  // namespace settle

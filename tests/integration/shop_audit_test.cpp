// The audit: each breach that it is for is planted by hand, and found.
#include "support/shop_world.hpp"

namespace settle {
namespace {

struct shop_audit : test::shop_world {
  // One order that is paid, and one that was cancelled.
  void two_orders() {
    start();
    paid = order();
    ASSERT_TRUE(ends_as(paid, "PROCESSING"));
    cancelled = order("card:declined");
    ASSERT_TRUE(ends_as(cancelled, "CANCELLED"));
    expect_clean_end();
    for (auto& one : running) one.stop();
  }
  void expect_found(const std::string& check, const std::string& service, const std::string& breach,
                    const std::string& repair) {
    run(service, breach);
    const auto report = audited();
    EXPECT_GT(report.of(check).breaches_count, 0) << check << " misses: " << breach;
    EXPECT_FALSE(report.clean());
    run(service, repair);
    EXPECT_TRUE(audited().clean()) << shop::to_text(audited());
  }
  std::string settles(const std::string& table) const {
    return (GetParam() == dialect::sqlite ? "settle_" : "settle.") + table;
  }
  std::string paid, cancelled;
};

// Proves V2, A2
TEST_P(shop_audit, finds_stock_that_somebody_has_changed_by_hand) {
  two_orders();
  for (const auto* check : {"stock_logs_add_up", "sellable_stock_adds_up"})
    expect_found(check, "order", "update products set in_stock = in_stock - 1",
                 "update products set in_stock = in_stock + 1");
  expect_found("physical_stock_adds_up", "warehouse", "update stock_items set on_hand = on_hand - 1",
               "update stock_items set on_hand = on_hand + 1");
  expect_found("sellable_stock_adds_up", "order", "update products set sales = sales + 1",
               "update products set sales = sales - 1");
  expect_found("stock_logs_add_up", "order",
               "update " + settles("quantity_log") + " set after = after + 1 where reason = 'received'",
               "update " + settles("quantity_log") + " set after = after - 1 where reason = 'received'");
}

// Proves V2, A3
TEST_P(shop_audit, finds_money_that_nobody_can_explain) {
  two_orders();
  expect_found("one_charge_per_order", "gateway",
               "insert into money (id, order_id, cents) values (1000, '" + paid + "', 700)",
               "delete from money where id = 1000");
  expect_found("money_adds_up", "gateway",
               "insert into money (id, order_id, cents) values (1000, '" + cancelled + "', 5)",
               "delete from money where id = 1000");
  expect_found("refunds_stay_below_captures", "gateway",
               "insert into money (id, order_id, cents) values (1000, '" + paid + "', -701)",
               "delete from money where id = 1000");
  expect_found("money_fits_the_orders", "order",
               "update orders set captured_cents = 700 where id = '" + cancelled + "'",
               "update orders set captured_cents = 0 where id = '" + cancelled + "'");
  expect_found("refunds_stay_below_captures", "payment",
               "insert into refunds values ('r', '" + paid + "', 701, 'DONE', 0)",
               "delete from refunds where refund_request_id = 'r'");
}

// Proves V2, A2
TEST_P(shop_audit, finds_orders_mails_and_goods_that_are_there_twice_or_not_at_all) {
  two_orders();
  // The tables refuse a second order by themselves, so the planted one is in a copy without their keys.
  run("order", "alter table orders rename to kept; create table orders as select * from kept");
  expect_found(
      "one_order_per_session", "order",
      "insert into orders select 'x', 'bob', checkout_session_id, 'k', payment_method, status, 0, 0, 0, '', "
      "0, 0 from orders where id = '" +
          cancelled + "'",
      "delete from orders where id = 'x'");
  expect_found(
      "one_order_per_key", "order",
      "insert into orders select 'x', user_id, 's', idempotency_key, payment_method, status, 0, 0, 0, '', "
      "0, 0 from orders where id = '" +
          cancelled + "'",
      "delete from orders where id = 'x'");
  expect_found("no_mail_twice", "notification",
               "insert into mails select 'x', event_id, to_user, subject, about from mails where about = '" +
                   paid + "'",
               "delete from mails where id = 'x'");
  expect_found("warehouse_fits_the_orders", "warehouse",
               "update fulfilments set status = 'REJECTED' where order_id = '" + cancelled + "'",
               "update fulfilments set status = 'RELEASED' where order_id = '" + cancelled + "'");
}

// Proves V2
TEST_P(shop_audit, finds_what_is_lost_and_what_waits_for_somebody) {
  two_orders();
  expect_found("nothing_is_stuck", "order", "update orders set status = 'PAID' where id = '" + paid + "'",
               "update orders set status = 'PROCESSING' where id = '" + paid + "'");
  expect_found(
      "nothing_is_stuck", "payment",
      "insert into gateway_calls (id, kind, order_id, amount_cents, next_at) values ('x', 'void', 'x', 0, 0)",
      "delete from gateway_calls where id = 'x'");
  expect_found("nothing_is_stuck", "gateway", "update deliveries set answered = 0",
               "update deliveries set answered = 200");
  expect_found("nothing_is_stuck", "gateway", "update deliveries set forged = 1",
               "update deliveries set forged = 0");
  const auto records = settles("processed_events");
  run("warehouse", "create table kept as select * from " + records +
                       " where event_type = 'order.paid'; delete from " + records +
                       " where event_type = 'order.paid'");
  const auto report = audited();
  EXPECT_GT(report.of("no_event_is_lost").breaches_count, 0) << "applied, and nobody has noted it";
}

INSTANTIATE_TEST_SUITE_P(databases, shop_audit, test::both_databases, test::database_name);

}  // namespace
}  // namespace settle

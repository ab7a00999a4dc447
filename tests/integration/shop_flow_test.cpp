// Seed 000's flow and its failure stories, on the whole shop.
#include <algorithm>

#include "order/order.hpp"
#include "payment/payment.hpp"
#include "settle/webhook_signature.hpp"
#include "support/shop_world.hpp"
#include "warehouse/warehouse.hpp"

namespace settle {
namespace {

struct shop_flow : test::shop_world {
  std::string states(const std::string& id) {
    auto tx = db("order").read();
    std::string all = "PENDING_PAYMENT";
    for (const auto& step : shop::orders(of).machine().history(tx, id)) all += " " + step.to;
    return all;
  }
  // Types of the events of a service, without those about goods that came.
  std::string events(const std::string& service) {
    const std::string outbox =
        GetParam() == dialect::sqlite ? "settle_outbox_events" : "settle.outbox_events";
    return text(service,
                "select event_type from " + outbox + " where event_type <> 'stock.received' order by id");
  }
  std::int64_t taken() {
    return number("gateway", "select coalesce(cast(sum(cents) as bigint), 0) from money");
  }

  request_answer tell(const std::string& body, const std::string& secret) const {
    const webhook::signing by{.how = webhook::scheme::stripe, .keys = {secret}};
    shop::http_client client([&] { return shop::port_of(of, "payment"); });
    return client.send({.method = "POST",
                        .target = "/webhooks/payment",
                        .headers = webhook::sign(by, body, environment().now()),
                        .body = body});
  }
};

// Proves A1, S5
TEST_P(shop_flow, an_order_that_is_paid_passes_every_state_and_event) {
  start();
  const auto id = order();
  ASSERT_TRUE(ends_as(id, "PROCESSING"));
  expect_clean_end();
  EXPECT_EQ(states(id), "PENDING_PAYMENT PAYMENT_INITIATED PAID STOCK_CONFIRMED PROCESSING");
  EXPECT_EQ(events("order"), "order.pending_payment order.paid order.processing");
  EXPECT_EQ(events("payment"), "payment.initiated payment.captured");
  EXPECT_EQ(events("warehouse"), "stock.reserved");
  EXPECT_EQ(text("notification", "select subject from mails"), "order_confirmed");
  EXPECT_EQ(taken(), 700);
}

// Proves A1, S5: compensating events mirror the business events
TEST_P(shop_flow, a_payment_that_fails_cancels_the_order_and_releases_its_stock) {
  start();
  const auto id = order("card:declined");
  ASSERT_TRUE(ends_as(id, "CANCELLED"));
  expect_clean_end();
  EXPECT_EQ(events("order"), "order.pending_payment order.cancelled");
  EXPECT_EQ(events("payment"), "payment.initiated payment.failed");
  EXPECT_EQ(events("warehouse"), "stock.released");
  EXPECT_EQ(in_stock("tea"), 10);
  EXPECT_EQ(taken(), 0);
}

// Proves A1
TEST_P(shop_flow, an_order_whose_payment_never_comes_is_cancelled_and_its_charge_let_go) {
  of.payment_window = std::chrono::milliseconds(300);
  start();
  const auto id = order("card:silent");
  ASSERT_TRUE(ends_as(id, "CANCELLED"));
  EXPECT_EQ(text("order", "select cancel_reason from orders"), "payment_expired");
  expect_clean_end();
  EXPECT_EQ(in_stock("tea"), 10);
  EXPECT_EQ(text("gateway", "select status from charges"), "VOIDED");
}

// Proves A1, A3
TEST_P(shop_flow, a_capture_that_comes_after_the_cancellation_is_refunded_once) {
  of.gateway.late_by = std::chrono::seconds(1);
  start();
  const auto id = order("card:late");
  ASSERT_TRUE(eventually([&] { return taken() == 700; }));
  EXPECT_EQ(ask("order", "POST", "/orders/" + id + "/cancel", "ann").status, 200);
  EXPECT_EQ(ask("order", "POST", "/orders/" + id + "/cancel", "ann").status, 200) << "again is no mistake";
  ASSERT_TRUE(eventually([&] { return text("payment", "select status from refunds") == "DONE"; }));
  expect_clean_end();
  EXPECT_EQ(taken(), 0);
  EXPECT_EQ(number("gateway", "select count(*) from money where cents < 0"), 1);
}

// Proves A1, A3
TEST_P(shop_flow, a_buyer_cancels_what_is_under_way_and_gets_his_money_back) {
  start();
  const auto id = order();
  ASSERT_TRUE(ends_as(id, "PROCESSING"));
  EXPECT_EQ(ask("order", "POST", "/orders/" + id + "/cancel", "ann").status, 200);
  ASSERT_TRUE(eventually([&] { return taken() == 0; }));
  expect_clean_end();
  EXPECT_EQ(in_stock("tea"), 10);
  EXPECT_EQ(number("warehouse", "select on_hand from stock_items"), 10);
}

// Proves A3, G2
TEST_P(shop_flow, webhooks_that_are_repeated_have_one_effect_and_forged_ones_none) {
  start();
  const auto id = order("card:duplicated", 2);
  ASSERT_TRUE(ends_as(id, "PROCESSING"));
  const auto body = text("gateway", "select body from deliveries limit 1");
  std::vector<std::jthread> copies;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i)
    copies.emplace_back([&] { answered += tell(body, of.webhook_secret).status == 200 ? 1 : 0; });
  copies.clear();
  EXPECT_EQ(answered, 8) << "a gateway that is told an error sends for ever";
  EXPECT_EQ(tell(body, "somebody else's").status, 401);
  expect_clean_end();
  EXPECT_EQ(number("payment", "select count(*) from payment_events"), 1);
  EXPECT_EQ(number("payment", "select captured_cents from payments"), 1400);
}

// Proves A3, I8
TEST_P(shop_flow, refunds_are_made_once_per_request_and_never_above_the_capture) {
  start();
  const auto id = order();
  ASSERT_TRUE(ends_as(id, "PROCESSING"));
  const auto refund = [&](const std::string& request, int cents) {
    return ask("payment", "POST", "/payments/" + id + "/refunds", "agent",
               R"({"refund_request_id":")" + request + R"(","amount_cents":)" + std::to_string(cents) + "}")
        .status;
  };
  EXPECT_EQ(refund("r1", 500), 202);
  EXPECT_EQ(refund("r1", 500), 202);
  EXPECT_EQ(refund("r2", 201), 409);
  EXPECT_EQ(refund("r3", 200), 202);
  ASSERT_TRUE(eventually([&] { return taken() == 0; }));
  EXPECT_EQ(number("gateway", "select count(*) from money where cents < 0"), 2);
  expect_clean_end();
}

// Proves A1
TEST_P(shop_flow, an_order_that_is_paid_and_cannot_be_packed_is_cancelled_and_refunded) {
  start();
  run("warehouse", "update stock_items set on_hand = 0");  // it has fallen off the shelf
  const auto id = order();
  ASSERT_TRUE(ends_as(id, "CANCELLED"));
  EXPECT_EQ(text("order", "select cancel_reason from orders"), "stock_missing");
  ASSERT_TRUE(eventually([&] { return number("gateway", "select count(*) from money") == 2; }));
  EXPECT_EQ(taken(), 0);
  const auto report = audited();
  EXPECT_GT(report.of("physical_stock_adds_up").breaches_count, 0) << "and the audit says what is missing";
}

// Proves A1: any order of arrival ends equal
TEST_P(shop_flow, the_warehouse_ends_the_same_in_whatever_order_it_hears_of_an_order) {
  start();
  for (auto& one : running)
    if (one.name() != "warehouse") one.stop();
  auto& warehouse = static_cast<shop::warehouse_service&>(
      std::ranges::find(running, "warehouse", &shop::running_service::name)->what());
  int number_of_order = 0;
  const auto hear = [&](const std::string& words) {
    const auto id = "order-" + std::to_string(++number_of_order);
    const std::vector<shop::line> lines = {{"tea", 1, 700}};
    for (const char word : words) {
      auto tx = db("warehouse").begin();
      const std::string nobody;
      if (word == 'o') warehouse.reserve(tx, {id, "ann", nobody, nobody, 700, 0, lines});
      if (word == 'p') warehouse.confirm(tx, {id, "ann", 700, lines});
      if (word == 'c') warehouse.release(tx, {id, "ann", "x", lines});
      tx.commit();
    }
    return text("warehouse", "select status from fulfilments where order_id = '" + id + "'");
  };
  for (const auto* words : {"op", "po", "oop", "opp", "pop"})
    EXPECT_EQ(hear(words), "STOCK_CONFIRMED") << words;
  EXPECT_EQ(number("warehouse", "select on_hand from stock_items"), 5);
  for (const auto* words : {"opc", "ocp", "poc", "pco", "cop", "cpo", "oc", "co", "c", "pc", "cp", "ccoopp"})
    EXPECT_EQ(hear(words), "RELEASED") << words;
  EXPECT_EQ(number("warehouse", "select on_hand from stock_items"), 5) << "what was cancelled is back";
}

// Proves C11
TEST_P(shop_flow, each_service_listens_to_what_is_declared_and_nothing_else) {
  start();
  std::size_t heard = 0;
  for (auto& one : running) {
    if (one.what().listener() == nullptr) continue;
    for (const auto& what : one.what().listener()->subscriptions()) {
      ++heard;
      EXPECT_TRUE(std::ranges::any_of(
          shop::declared_subscriptions(),
          [&](const auto& declared) { return declared.service == one.name() && declared.type == what.type; }))
          << one.name() << " listens to " << what.type;
    }
  }
  EXPECT_EQ(heard, shop::declared_subscriptions().size());
}

INSTANTIATE_TEST_SUITE_P(databases, shop_flow, test::both_databases, test::database_name);

}  // namespace
}  // namespace settle

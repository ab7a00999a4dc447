// The whole shop in this process, each service with a database of its own, over the embedded broker.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <map>
#include <thread>

#include "audit/audit.hpp"
#include "http_client.hpp"
#include "json.hpp"
#include "service.hpp"
#include "stores.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

struct shop_world : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (GetParam() == dialect::postgres)
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    of.folder = dir.path().string();
    of.gateway.late_by = std::chrono::milliseconds(1);
    if (GetParam() != dialect::postgres) return;
    for (const auto& name : shop::service_names()) of.services[name].database = scratch[name].conninfo();
  }

  void start() {
    hub = shop::open_broker(of.broker_place(), env);
    for (const auto& name : shop::service_names()) running.emplace_back(of, name, *hub, env);
    sell("tea", 700, 10);
  }

  database& db(const std::string& service) {
    for (auto& one : running)
      if (one.name() == service) return one.db();
    throw std::runtime_error("there is no service " + service);
  }

  void sell(const std::string& sku, int price, int quantity) {
    ask("order", "PUT", "/products/" + sku, "clerk",
        R"({"name":"x","price_cents":)" + std::to_string(price) + "}");
    ask("warehouse", "POST", "/receipts", "clerk",
        R"({"receipt_id":"r-)" + sku + R"(","sku":")" + sku + R"(","quantity":)" + std::to_string(quantity) +
            "}");
    ASSERT_TRUE(eventually([&] { return in_stock(sku) == quantity; }));
  }

  request_answer ask(const std::string& service, const std::string& method, const std::string& target,
                     const std::string& user, const std::string& body = "",
                     const std::string& key = "") const {
    shop::http_client client([&] { return shop::port_of(of, service); }, std::chrono::seconds(30));
    shop::http_call call{.method = method, .target = target, .headers = {{"X-User", user}}, .body = body};
    if (!key.empty()) call.headers.emplace_back("Idempotency-Key", key);
    return client.send(call);
  }

  void put_into_cart(const std::string& user, const std::string& sku, int quantity) const {
    const auto body = R"({"quantity":)" + std::to_string(quantity) + "}";
    EXPECT_EQ(ask("order", "PUT", "/cart/items/" + sku, user, body).status, 200);
  }

  std::string session(const std::string& user) const {
    const auto answer = ask("checkout", "POST", "/checkouts", user, "{}", request_key::make().text());
    return shop::read_json(answer.body).text("checkout_session_id");
  }

  static std::string order_body(const std::string& session, const std::string& method = "card:good") {
    return R"({"checkout_session_id":")" + session + R"(","payment_method":")" + method + "\"}";
  }

  // One tea for Ann, paid in this way. Its id.
  std::string order(const std::string& method = "card:good", int quantity = 1) const {
    put_into_cart("ann", "tea", quantity);
    const auto s = session("ann");
    const auto answer = ask("order", "POST", "/orders", "ann", order_body(s, method), "key-" + s);
    EXPECT_EQ(answer.status, 201) << answer.body;
    return shop::read_json(answer.body).text("id");
  }

  std::string text(const std::string& service, const std::string& sql) {
    auto tx = db(service).read();
    const auto found = tx.execute(sql);
    std::string all;
    for (std::size_t i = 0; i < found.size(); ++i) all += (all.empty() ? "" : " ") + found[i][0].text();
    return all;
  }
  std::int64_t number(const std::string& service, const std::string& sql) {
    auto tx = db(service).read();
    return tx.execute(sql)[0][0].integer();
  }
  void run(const std::string& service, const std::string& sql) {
    auto tx = db(service).begin();
    tx.execute_script(sql);
    tx.commit();
  }

  std::int64_t in_stock(const std::string& sku) {
    return number("order", "select coalesce(max(in_stock), -1) from products where sku = '" + sku + "'");
  }
  std::string status(const std::string& id) {
    return text("order", "select status from orders where id = '" + id + "'");
  }

  static bool eventually(const std::function<bool()>& what) {
    for (int i = 0; i < 6000; ++i) {
      if (what()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  bool ends_as(const std::string& id, const std::string& wanted) {
    return eventually([&] { return status(id) == wanted; });
  }

  shop::audit_report audited() {
    return shop::audit({db("order"), db("payment"), db("warehouse"), db("checkout"), db("notification"),
                        db("gateway"), *hub});
  }
  // Nothing moves any more, and everything adds up.
  void expect_clean_end() {
    shop::audit_report last;
    EXPECT_TRUE(eventually([&] { return (last = audited()).clean(); })) << shop::to_text(last);
  }

  temp_dir dir;
  std::map<std::string, scratch_database> scratch;
  quiet_log log;
  environment env{.log = &log};
  shop::config of;
  std::unique_ptr<settle::broker> hub;
  std::list<shop::running_service> running;
};

}  // namespace settle::test

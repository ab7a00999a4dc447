// What the others get wrong, done right: it compiles, so they fail for the reason that they name.
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "settle/consume.hpp"
#include "settle/guard.hpp"
#include "settle/http.hpp"
#include "settle/http_once.hpp"
#include "settle/jobs.hpp"
#include "settle/once.hpp"
#include "settle/publish.hpp"
#include "settle/webhook.hpp"

struct order_placed {
  std::string id;
};

template <>
struct settle::codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.id; }
  static std::string encode(const order_placed& e) { return e.id; }
  static order_placed decode(std::string_view payload) { return {std::string(payload)}; }
};

struct convertible_to_an_event {
  operator settle::event() const { return {}; }
};
enum colour { red };

void consuming(settle::consumer& shop,
               const std::function<void(const order_placed&, settle::transaction&)>& given) {
  shop.on<order_placed>([](const order_placed&, settle::transaction&) {})
      .on<order_placed>([](const order_placed&, settle::transaction&, const settle::message&) {})
      .on<order_placed>([](const auto&, auto&) {}, {.effects = settle::handler_effects::outside})
      .on<order_placed>(given)
      .on("orders", "order.placed", [](const settle::message&, settle::transaction&) {})
      .on_batch<order_placed>([](std::span<const order_placed>, settle::transaction&) {})
      .on_batch("orders", "order.placed",
                [](std::span<const settle::message* const>, settle::transaction&) {});
}

void publishing(settle::transaction& tx) {
  settle::publish(tx, order_placed{"o-1"});
  settle::publish(tx, convertible_to_an_event{});
  settle::publish(tx, {.topic = "orders", .type = "order.placed", .payload = "{}"});
  settle::publish_once(tx, order_placed{"o-1"});
  tx.execute("select $1, $2, $3", {std::string(1, 'a'), red, std::string().size()});
}

void asked_once(settle::database& db, settle::owned_transaction& tx) {
  settle::once(db, {"shop", "ann", "k-1"}, [](settle::transaction&) { return settle::answer{}; });
  settle::once(tx, {"shop", "ann", "k-1"}, [](auto&) { return settle::answer{}; }, {.fingerprint = "x"});
}

void serving(settle::http::router& routes, settle::database& db, const settle::http::idempotency& policy) {
  routes.post("/a", [](const settle::http::request&) { return settle::http::response{}; });
  routes.post("/b", settle::http::idempotent(db, policy, [](const auto&, settle::transaction&) {
                return settle::http::response{};
              }));
}

void working(settle::job_runner& jobs, settle::webhook::worker& hooks, settle::webhook::inbox& inbox,
             settle::database& db, const settle::webhook::request& asked, settle::guard_options& guard) {
  const auto done = [](const settle::webhook::received&, settle::transaction&) {
    return settle::webhook::answer::done;
  };
  jobs.on("resize", [](const settle::job&, settle::transaction&) {});
  hooks.on("stripe", "", done);
  inbox.apply(db, asked, done);
  guard.make_event = [](const settle::guard_step&) { return settle::event{}; };
}

// Expected: a handler of consumer::on(topic, type, …) takes (const settle::message&, settle::transaction&)
#include <string>
#include <string_view>

#include "settle/consume.hpp"

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

void wrong(settle::consumer& shop) {
  shop.on("orders", "order.placed", [](const order_placed&, settle::transaction&) {});  // here
}

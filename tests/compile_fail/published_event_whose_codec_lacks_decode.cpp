// Expected: the codec lacks `static your_event decode(std::string_view)`
#include <string>
#include <string_view>

#include "settle/publish.hpp"

struct order_placed {
  std::string id;
};

template <>
struct settle::codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.id; }
  static std::string encode(const order_placed& e) { return e.id; }
};

void wrong(settle::transaction& tx) {
  settle::publish(tx, order_placed{"o-1"});  // here
}

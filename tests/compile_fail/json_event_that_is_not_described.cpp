// Expected: settle: Boost.JSON does not know this event: write BOOST_DESCRIBE_STRUCT(your_event, (), (its,
// members)) below it
#include <string>
#include <string_view>

#include "settle/adapter/boost_json.hpp"
#include "settle/publish.hpp"

struct order_placed {
  std::string id;
};

template <>
struct settle::codec<order_placed> : settle::json_codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.id; }
};

void wrong(settle::transaction& tx) {
  settle::publish(tx, order_placed{"o-1"});  // here
}

// The tutorial's event (1_an_event_with_your_row.md quotes all of it).
// [snippet: tutorial_event]
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "settle/adapter/boost_json.hpp"
#include "settle/codec.hpp"

struct order_placed {
  std::string order_id;
  std::int64_t total_cents = 0;
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order_id, total_cents))

template <>
struct settle::codec<order_placed> : settle::json_codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.order_id; }  // order is kept per key
};
// [end]

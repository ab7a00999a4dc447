// The same events and rows for ours and for raw: a payload of about 200 bytes, 1,000 keys.
#pragma once

#include <cstdint>
#include <string>

#include "settle/event.hpp"

namespace bench {

inline constexpr const char* topic = "orders";
inline constexpr const char* type = "order.placed";

inline std::string key_of(std::int64_t number) { return "order-" + std::to_string(number % 1000); }

inline const std::string& payload() {
  static const std::string text =
      R"({"order_id":"order-4711","customer":"c-100200300","currency":"EUR","total_cents":4200,"lines":[)"
      R"({"sku":"A-1001","quantity":2,"price_cents":1500},{"sku":"B-2002","quantity":1,"price_cents":1200}]})";
  return text;
}

inline settle::event event_of(std::int64_t number) {
  return {.topic = topic, .type = type, .key = key_of(number), .payload = payload()};
}

}  // namespace bench

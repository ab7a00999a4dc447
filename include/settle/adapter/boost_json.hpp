// JSON payloads through Boost.JSON: encode and decode for every type that boost::json can convert
// (value_from / value_to: described types, or tag_invoke overloads of your own).
//
//   template <>
//   struct settle::codec<order_placed> : settle::json_codec<order_placed> {
//     static constexpr std::string_view topic = "orders";
//     static constexpr std::string_view type = "order.placed";
//     static std::string key(const order_placed& e) { return e.order_id; }
//   };
//
// Described types are strict in Boost 1.81: a payload with a missing or an extra member does not decode.
// Where events grow new members, write tag_invoke.
//
// Link Boost::json, or include <boost/json/src.hpp> in one source file.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "settle/codec.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

template <class T>
struct json_codec {
  static constexpr std::string_view content_type = "application/json";

  static std::string encode(const T& value) {
    constexpr bool known = boost::json::has_value_from<T>::value;
    static_assert(
        known,
        "settle: Boost.JSON does not know this event: write BOOST_DESCRIBE_STRUCT(your_event, (), (its, "
        "members)) below it, or tag_invoke overloads; each member's type must be known as well");
    if constexpr (known) return boost::json::serialize(boost::json::value_from(value));
  }
  static T decode(std::string_view payload) {
    constexpr bool known = boost::json::has_value_to<T>::value;
    static_assert(
        known,
        "settle: Boost.JSON cannot make this event of JSON: write BOOST_DESCRIBE_STRUCT(your_event, (), "
        "(its, members)) below it, or tag_invoke overloads; it must be default-constructible");
    if constexpr (known)
      return boost::json::value_to<T>(boost::json::parse({payload.data(), payload.size()}));
  }
};

}  // namespace settle::inline v0

#pragma GCC visibility pop

// How a C++ type becomes an event and back: the one customisation point for typed events.
//
//   struct order_placed { std::string order_id; std::int64_t total_cents; };
//
//   template <>
//   struct settle::codec<order_placed> {
//     static constexpr std::string_view topic = "orders";
//     static constexpr std::string_view type = "order.placed";
//     static std::string key(const order_placed& e) { return e.order_id; }
//     static std::string encode(const order_placed& e);
//     static order_placed decode(std::string_view payload);   // throws if it cannot be read
//   };
//
// Optional members: `aggregate_type` and `content_type` (std::string_view constants).
// settle/adapter/boost_json.hpp writes encode and decode for types that Boost.JSON can describe.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "settle/event.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

template <class T>
struct codec;

template <class T>
concept encodable = requires(const T& value, std::string_view payload) {
  { codec<T>::topic } -> std::convertible_to<std::string_view>;
  { codec<T>::type } -> std::convertible_to<std::string_view>;
  { codec<T>::key(value) } -> std::convertible_to<std::string>;
  { codec<T>::encode(value) } -> std::convertible_to<std::string>;
  { codec<T>::decode(payload) } -> std::convertible_to<T>;
};

template <encodable T>
event to_event(const T& value) {
  event made;
  made.topic = codec<T>::topic;
  made.type = codec<T>::type;
  made.key = codec<T>::key(value);
  made.payload = codec<T>::encode(value);
  if constexpr (requires { codec<T>::aggregate_type; }) made.aggregate_type = codec<T>::aggregate_type;
  if constexpr (requires { codec<T>::content_type; }) made.content_type = codec<T>::content_type;
  return made;
}

}  // namespace settle

#pragma GCC visibility pop

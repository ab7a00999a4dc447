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
#include <type_traits>

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

namespace detail {

// One sentence about what is missing, at the top of the compiler's messages.
template <class T>
constexpr void require_codec() {
  static_assert(
      requires { sizeof(codec<T>); },
      "settle: this event type has no codec: write `template <> struct settle::codec<your_event>` as "
      "settle/codec.hpp shows");
  if constexpr (requires { sizeof(codec<T>); }) {
    using std::convertible_to;
    static_assert(
        requires {
          { codec<T>::topic } -> convertible_to<std::string_view>;
        }, "settle: the codec lacks `static constexpr std::string_view topic`");
    static_assert(
        requires {
          { codec<T>::type } -> convertible_to<std::string_view>;
        }, "settle: the codec lacks `static constexpr std::string_view type`");
    static_assert(
        requires(const T& of) {
          { codec<T>::key(of) } -> convertible_to<std::string>;
        }, "settle: the codec lacks `static std::string key(const your_event&)`");
    static_assert(
        requires(const T& of) {
          { codec<T>::encode(of) } -> convertible_to<std::string>;
        }, "settle: the codec lacks `static std::string encode(const your_event&)`");
    static_assert(
        requires(std::string_view payload) {
          { codec<T>::decode(payload) } -> convertible_to<T>;
        }, "settle: the codec lacks `static your_event decode(std::string_view)`");
  }
}

// A function object that was never given a function.
template <class Function>
bool is_empty(const Function& function) {
  if constexpr (std::is_pointer_v<Function>)
    return function == nullptr;
  else if constexpr (requires { function.operator bool(); })
    return !function.operator bool();
  else
    return false;
}

// What publish() looks for a codec for; something that is convertible to an event goes as that.
template <class T>
concept event_like = encodable<T> || !std::convertible_to<const T&, event>;

}  // namespace detail

template <class T>
event to_event(const T& value) {
  detail::require_codec<T>();
  event made;
  if constexpr (encodable<T>) {
    made.topic = codec<T>::topic;
    made.type = codec<T>::type;
    made.key = codec<T>::key(value);
    made.payload = codec<T>::encode(value);
    if constexpr (requires { codec<T>::aggregate_type; }) made.aggregate_type = codec<T>::aggregate_type;
    if constexpr (requires { codec<T>::content_type; }) made.content_type = codec<T>::content_type;
  }
  return made;
}

}  // namespace settle

#pragma GCC visibility pop

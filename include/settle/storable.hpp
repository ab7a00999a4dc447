// Values that a saga keeps between two processes: inputs and results of steps.
//
// Numbers, booleans, enums, strings, ids, times and optionals of these are stored as they are; of a type of
// your own its codec (settle/codec.hpp) is asked, of which `encode` and `decode` are enough here.
//
//   template <>
//   struct settle::codec<order> {
//     static std::string encode(const order& o);
//     static order decode(std::string_view bytes);  // throws if it cannot be read
//   };
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "settle/codec.hpp"
#include "settle/environment.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {
namespace detail {

template <class T>
concept has_bytes = requires(const T& value, std::string_view bytes) {
  { codec<T>::encode(value) } -> std::convertible_to<std::string>;
  { codec<T>::decode(bytes) } -> std::convertible_to<T>;
};

template <class T>
struct is_id : std::false_type {};
template <class Kind>
struct is_id<id<Kind>> : std::true_type {};
template <>
struct is_id<uuid> : std::true_type {};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
concept plainly_stored = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
                         is_id<T>::value || std::same_as<T, timestamp> || std::same_as<T, duration>;

[[noreturn]] void cannot_read_stored(std::string_view what);

// Parts of one text, each after its length.
void append_stored(std::string& to, std::string_view part);
std::string_view take_stored(std::string_view& from);

}  // namespace detail

template <class T>
concept storable = detail::has_bytes<T> || detail::plainly_stored<T> || detail::is_optional<T>::value;

namespace detail {

template <class T>
constexpr void require_storable() {
  static_assert(storable<T>,
                "settle: a saga stores inputs and results of its steps, and does not know how to store this "
                "type: write `template <> struct settle::codec<your_type>` with encode and decode");
}

template <class Number>
std::string number_text(Number number) {
  char room[64];
  return {room, std::to_chars(room, room + sizeof room, number).ptr};
}

template <class Number>
Number read_number(std::string_view text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) cannot_read_stored("number");
  return number;
}

template <class T>
std::string store(const T& what) {
  require_storable<T>();
  if constexpr (has_bytes<T>)
    return codec<T>::encode(what);
  else if constexpr (is_optional<T>::value)
    return what ? "=" + store(*what) : std::string();
  else if constexpr (std::same_as<T, bool>)
    return what ? "true" : "false";
  else if constexpr (std::is_enum_v<T>)
    return number_text(static_cast<std::int64_t>(what));
  else if constexpr (std::is_arithmetic_v<T>)
    return number_text(what);
  else if constexpr (std::same_as<T, std::string>)
    return what;
  else if constexpr (is_id<T>::value)
    return what.text();
  else if constexpr (std::same_as<T, timestamp>)
    return number_text(what.time_since_epoch().count());
  else if constexpr (std::same_as<T, duration>)
    return number_text(what.count());
  else
    return {};
}

template <class T>
T read_stored(std::string_view bytes) {
  require_storable<T>();
  if constexpr (has_bytes<T>)
    return codec<T>::decode(bytes);
  else if constexpr (is_optional<T>::value)
    return bytes.empty() ? T() : T(read_stored<typename T::value_type>(bytes.substr(1)));
  else if constexpr (std::same_as<T, bool>)
    return bytes == "true" || (bytes != "false" && (cannot_read_stored("bool"), false));
  else if constexpr (std::is_enum_v<T>)
    return static_cast<T>(read_number<std::int64_t>(bytes));
  else if constexpr (std::is_arithmetic_v<T>)
    return read_number<T>(bytes);
  else if constexpr (std::same_as<T, std::string>)
    return std::string(bytes);
  else if constexpr (is_id<T>::value) {
    const auto found = T::parse(bytes);
    if (!found) cannot_read_stored("id");
    return *found;
  } else if constexpr (std::same_as<T, timestamp>)
    return timestamp(duration(read_number<duration::rep>(bytes)));
  else
    return duration(read_number<duration::rep>(bytes));
}

// All arguments of a step. One alone is stored as it is, so that people can read it.
template <class... Args>
std::string store_all(const Args&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return {};
  } else if constexpr (sizeof...(Args) == 1) {
    return store(args...);
  } else {
    std::string all;
    (append_stored(all, store(args)), ...);
    return all;
  }
}

template <class... Args>
std::tuple<Args...> read_all(std::string_view bytes) {
  if constexpr (sizeof...(Args) == 0)
    return {};
  else if constexpr (sizeof...(Args) == 1)
    return {read_stored<Args>(bytes)...};
  else
    return std::tuple<Args...>{read_stored<Args>(take_stored(bytes))...};  // braces: from left to right
}

}  // namespace detail
}  // namespace settle::inline v0

#pragma GCC visibility pop

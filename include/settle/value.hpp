// One SQL value: null, integer, real, decimal, text or bytes.
//
//   tx.execute("insert into orders (id, cents, items) values ($1, $2, $3)", {order_id, 4200, cart.size()});
//
// Nothing is rounded on the way in: every integer that fits into 64 bits with a sign is an integer, a larger
// one is refused (invalid_argument), and what is neither clearly a number nor clearly text (a character, a
// scoped enum, a long double) does not compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Bytes that are not text. Payloads are stored this way: opaque, any length up to payload_bytes_max.
struct blob {
  std::string bytes;
  friend bool operator==(const blob&, const blob&) = default;
};

// A number with all its digits, as PostgreSQL's numeric has them: "12.50", "-7". Sent to a database it is its
// digits as text, which PostgreSQL's numeric keeps; SQLite has no such type and makes of it what the column
// says.
struct decimal {
  std::string digits;
  friend bool operator==(const decimal&, const decimal&) = default;
};

namespace detail {

template <class T>
concept character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

// The same in every mode of the compiler: wider integers than 64 bits are none here.
template <class T>
concept sql_integer = std::integral<T> && !character<T> && sizeof(T) <= sizeof(std::int64_t);

template <class T>
concept plain_enum = std::is_enum_v<T> && std::is_convertible_v<T, std::int64_t>;

template <class T>
concept wide_number = (std::is_arithmetic_v<T> && sizeof(T) > sizeof(std::int64_t))
#ifdef __SIZEOF_INT128__
                      || std::same_as<T, __int128> || std::same_as<T, unsigned __int128>
#endif
    ;

}  // namespace detail

class value {
 public:
  value() = default;
  value(std::nullptr_t) {}
  // Throws invalid_argument for a number above 2^63 - 1: SQL integers have a sign and 64 bits.
  template <detail::sql_integer T>
  value(T number) : held_(static_cast<std::int64_t>(number)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::int64_t))
      if (number > static_cast<T>(std::numeric_limits<std::int64_t>::max())) refuse_too_large();
  }
  template <detail::plain_enum T>
  value(T number) : value(static_cast<std::underlying_type_t<T>>(number)) {}
  template <std::floating_point T>
    requires(sizeof(T) <= sizeof(double))
  value(T number) : held_(static_cast<double>(number)) {}
  template <detail::character T>
  value(T) = delete;  // a character: say std::string(1, c), or static_cast<int>(c)
  template <detail::wide_number T>
  value(T) = delete;  // too wide for SQL: say static_cast<double>, static_cast<std::int64_t>, or its text
  template <class T>
    requires(std::is_enum_v<T> && !detail::plain_enum<T>)
  value(T) = delete;  // a scoped enum: say static_cast<int>, or the text that names it
  value(decimal number) : held_(std::move(number)) {}
  value(std::string text) : held_(std::move(text)) {}
  value(std::string_view text) : held_(std::string(text)) {}
  value(const char* text) : held_(std::string(text)) {}
  value(blob bytes) : held_(std::move(bytes)) {}
  value(timestamp at) : held_(static_cast<std::int64_t>(at.time_since_epoch().count())) {}
  value(const uuid& id) : held_(id.text()) {}
  template <class Kind>
  value(const id<Kind>& typed) : held_(typed.text()) {}
  template <class T>
  value(std::optional<T> maybe) {
    if (maybe) *this = value(std::move(*maybe));
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(held_); }

  // Each throws unexpected_result if the value is of another type; the message says what to cast.
  std::int64_t integer() const;     // also of a decimal that is a whole number of 64 bits
  double real() const;              // also of an integer, and of a decimal, as near as it gets
  bool boolean() const;             // of the integers 0 and 1, which is how booleans come back
  const std::string& text() const;  // also of a decimal: all its digits
  const std::string& bytes() const;
  timestamp time() const { return timestamp(duration(integer())); }
  std::string take_text() &&;
  std::string take_bytes() &&;

  const auto& variant() const { return held_; }
  friend bool operator==(const value&, const value&) = default;

 private:
  [[noreturn]] static void refuse_too_large();

  std::variant<std::monostate, std::int64_t, double, std::string, blob, decimal> held_;
};

}  // namespace settle

#pragma GCC visibility pop

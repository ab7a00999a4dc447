// One SQL value: null, integer, real, text or bytes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

class value {
 public:
  value() = default;
  value(std::nullptr_t) {}
  template <std::integral T>
    requires(std::signed_integral<T> || sizeof(T) < sizeof(std::int64_t))  // SQL integers are signed, 64 bits
  value(T number) : held_(static_cast<std::int64_t>(number)) {}
  value(double number) : held_(number) {}
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

  // Each throws invalid_argument if the value is of another type.
  std::int64_t integer() const;
  double real() const;  // also of an integer
  const std::string& text() const;
  const std::string& bytes() const;
  timestamp time() const { return timestamp(duration(integer())); }
  std::string take_text() &&;
  std::string take_bytes() &&;

  const auto& variant() const { return held_; }
  friend bool operator==(const value&, const value&) = default;

 private:
  std::variant<std::monostate, std::int64_t, double, std::string, blob> held_;
};

}  // namespace settle

#pragma GCC visibility pop

#include "settle/value.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::string_view kinds[] = {"null", "an integer", "a real", "text", "bytes", "a decimal"};

// Values stay out of messages: they end in logs.
[[noreturn]] void refuse(const std::string& what) { throw error(errc::unexpected_result, what); }

[[noreturn]] void refuse(const value& of, std::string_view wanted, std::string_view advice) {
  std::string text("a value is ");
  text.append(kinds[of.variant().index()]).append(" where ").append(wanted).append(" was expected: ");
  refuse(text.append(of.is_null() ? "look at is_null() first" : advice));
}

constexpr std::string_view cast_to_integer = "cast it in the statement, cast(… as bigint)";
constexpr std::string_view cast_to_real = "cast it in the statement, cast(… as double precision)";
constexpr std::string_view cast_to_text = "cast it in the statement, cast(… as text)";

std::int64_t whole(std::string_view digits) {
  const auto point = digits.find('.');
  if (point != std::string_view::npos && digits.find_first_not_of('0', point + 1) != std::string_view::npos)
    refuse(
        "a decimal with a fraction was read as an integer: read real() or text(), or cast it in the "
        "statement, cast(round(…) as bigint)");
  const auto before = digits.substr(0, point);
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(before.data(), before.data() + before.size(), number);
  if (failed != std::errc{} || end != before.data() + before.size())
    refuse("a decimal that is no integer of 64 bits was read as one: read text(), which has all its digits");
  return number;
}

double nearest(std::string_view digits) {
  double number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{} || end != digits.data() + digits.size())
    refuse("a decimal that is beyond a double was read as one: read text(), which has all its digits");
  return number;
}

}  // namespace

void value::refuse_too_large() {
  throw error(errc::invalid_argument,
              "an unsigned integer above 9223372036854775807 is too large for an SQL integer, which has a "
              "sign: send it as text, or as settle::decimal to a numeric column");
}

std::int64_t value::integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&held_)) return *number;
  if (const auto* number = std::get_if<decimal>(&held_)) return whole(number->digits);
  refuse(
      *this, "an integer",
      std::holds_alternative<double>(held_) ? "read real(), or round it in the statement" : cast_to_integer);
}

double value::real() const {
  if (const auto* number = std::get_if<double>(&held_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&held_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<decimal>(&held_)) return nearest(number->digits);
  refuse(*this, "a real", cast_to_real);
}

bool value::boolean() const {
  const auto* number = std::get_if<std::int64_t>(&held_);
  if (number != nullptr && (*number == 0 || *number == 1)) return *number == 1;
  if (number != nullptr) refuse("an integer that is neither 0 nor 1 was read as a boolean: read integer()");
  refuse(*this, "a boolean", cast_to_integer);
}

const std::string& value::text() const {
  if (const auto* text = std::get_if<std::string>(&held_)) return *text;
  if (const auto* number = std::get_if<decimal>(&held_)) return number->digits;
  refuse(*this, "text", std::holds_alternative<blob>(held_) ? "read bytes()" : cast_to_text);
}

const std::string& value::bytes() const {
  if (const auto* data = std::get_if<blob>(&held_)) return data->bytes;
  refuse(*this, "bytes", std::holds_alternative<std::string>(held_) ? "read text()" : cast_to_text);
}

std::string value::take_text() && {
  text();  // throws if it has none
  if (auto* number = std::get_if<decimal>(&held_)) return std::move(number->digits);
  return std::move(std::get<std::string>(held_));
}

std::string value::take_bytes() && {
  bytes();  // throws if it has none
  return std::move(std::get<blob>(held_).bytes);
}

}  // namespace settle

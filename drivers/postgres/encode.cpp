#include "postgres/encode.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "postgres/types.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"

namespace settle::inline v0::postgres {

struct parameter_buffer::writer {
  parameter_buffer& into;
  std::size_t at;

  void operator()(std::monostate) const { into.data_[at] = nullptr; }
  void operator()(std::int64_t number) const { put(number); }
  void operator()(double number) const { put(number); }
  void operator()(const std::string& text) const {
    if (text.find('\0') != std::string::npos)
      throw error(errc::invalid_argument, "text with a NUL inside; PostgreSQL cannot hold it, bytes can");
    into.data_[at] = text.c_str();
    into.lengths_[at] = static_cast<int>(std::min<std::size_t>(text.size(), std::numeric_limits<int>::max()));
  }
  void operator()(const decimal& number) const { (*this)(number.digits); }
  void operator()(const blob& data) const {
    if (data.bytes.size() > std::numeric_limits<int>::max())
      throw error(errc::invalid_argument, "more than 2 GiB of bytes in one value");
    into.data_[at] = data.bytes.data();
    into.lengths_[at] = static_cast<int>(data.bytes.size());
    into.formats_[at] = 1;
    into.types_[at] = oid::bytea;
  }

 private:
  void put(auto number) const {
    auto& room = into.numbers_[at];
    *std::to_chars(room.data(), room.data() + room.size() - 1, number).ptr = '\0';
    into.data_[at] = room.data();
  }
};

void parameter_buffer::assign(std::span<const value> values) {
  data_.assign(values.size(), nullptr);
  lengths_.assign(values.size(), 0);
  formats_.assign(values.size(), 0);
  types_.assign(values.size(), 0);
  numbers_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::visit(writer{*this, i}, values[i].variant());
}

namespace {

void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') to += '\\';
    to += c;
  }
  to += '"';
}

// An array literal: {…,…}.
template <class T>
value literal(std::span<const T> elements, auto&& append) {
  std::string text = "{";
  for (const auto& one : elements) {
    if (text.size() > 1) text += ',';
    append(text, one);
  }
  text += '}';
  return text;
}

}  // namespace

value array(std::span<const std::string> elements) {
  return literal(elements, [](std::string& to, const std::string& one) { append_quoted(to, one); });
}

value array(std::span<const std::int64_t> elements) {
  return literal(elements, [](std::string& to, std::int64_t one) { to += std::to_string(one); });
}

value array(std::span<const blob> elements) {
  return literal(elements, [](std::string& to, const blob& one) {
    constexpr char digits[] = "0123456789abcdef";
    to += "\"\\\\x";
    for (const unsigned char c : one.bytes) {
      to += digits[c >> 4];
      to += digits[c & 15];
    }
    to += '"';
  });
}

}  // namespace settle::inline v0::postgres

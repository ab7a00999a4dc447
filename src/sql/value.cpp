#include "settle/value.hpp"

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr const char* kinds[] = {"null", "an integer", "a real", "text", "bytes"};

template <class T>
const T& expect(const auto& held, const char* wanted) {
  if (const auto* found = std::get_if<T>(&held)) return *found;
  throw error(errc::invalid_argument,
              std::string("a value is ") + kinds[held.index()] + " where " + wanted + " was expected");
}

}  // namespace

std::int64_t value::integer() const { return expect<std::int64_t>(held_, "an integer"); }

double value::real() const {
  if (const auto* number = std::get_if<std::int64_t>(&held_)) return static_cast<double>(*number);
  return expect<double>(held_, "a real");
}

const std::string& value::text() const { return expect<std::string>(held_, "text"); }
const std::string& value::bytes() const { return expect<blob>(held_, "bytes").bytes; }

std::string value::take_text() && {
  expect<std::string>(held_, "text");
  return std::move(std::get<std::string>(held_));
}

std::string value::take_bytes() && {
  expect<blob>(held_, "bytes");
  return std::move(std::get<blob>(held_).bytes);
}

}  // namespace settle

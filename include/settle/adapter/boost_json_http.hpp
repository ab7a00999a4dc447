// JSON bodies through Boost.JSON, within limits.
//
//   routes.post("/orders", [&](const settle::http::request& asked) {
//     const auto given = settle::http::parse_json(asked);
//     if (!given) return given.refused();                      // 400, 413 or 415 with a problem document
//     return settle::http::json(201, {{"id", place_order(given->as_object())}});
//   });
//
// A document with a member twice in one object is refused: nobody can tell which of them was meant.
//
// Link Boost::json, or include <boost/json/src.hpp> in one source file.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "settle/http.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::http {

struct json_limits {
  std::size_t bytes_max = std::size_t{1} * 1024 * 1024;  // of the text; 413 beyond it
  std::size_t depth_max = 32;                            // arrays and objects inside each other
};

// A document, or the answer for whoever sent something else.
class parsed_json {
 public:
  parsed_json(boost::json::value value) : held_(std::move(value)) {}
  parsed_json(response refused) : held_(std::move(refused)) {}

  explicit operator bool() const { return held_.index() == 0; }
  const boost::json::value& operator*() const& { return std::get<0>(held_); }
  boost::json::value&& operator*() && { return std::get<0>(std::move(held_)); }
  const boost::json::value* operator->() const { return &std::get<0>(held_); }
  response refused() const { return std::get<1>(held_); }

 private:
  std::variant<boost::json::value, response> held_;
};

namespace detail {

// application/json or anything/…+json, in either case, whatever parameters follow.
inline bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  constexpr std::string_view suffix = "+json";
  return same_name(type, "application/json") ||
         (type.size() > suffix.size() && same_name(type.substr(type.size() - suffix.size()), suffix));
}

// Members of all objects in a document.
inline std::size_t members_of(const boost::json::value& value) {
  std::size_t count = 0;
  if (const auto* object = value.if_object()) {
    count = object->size();
    for (const auto& one : *object) count += members_of(one.value());
  } else if (const auto* array = value.if_array()) {
    for (const auto& one : *array) count += members_of(one);
  }
  return count;
}

}  // namespace detail

// Whether an object has a member twice: one reader takes the first, another one the last. `text` is what
// `value` was parsed from. Each member as written has a colon outside of strings; of two with one name, one
// was kept.
inline bool repeats_a_member(std::string_view text, const boost::json::value& value) {
  std::size_t colons = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"')
      in_string = !in_string;
    else if (in_string && c == '\\')
      ++at;
    else if (!in_string && c == ':')
      ++colons;
  }
  return colons != detail::members_of(value);
}

// `in` is where the value keeps what it holds.
inline parsed_json parse_json(std::string_view text, const json_limits& limits = {},
                              const boost::json::storage_ptr& in = {}) {
  if (text.size() > limits.bytes_max) return problem(413, "body_too_large", "the JSON document is too large");
  boost::json::parse_options options;
  options.max_depth = limits.depth_max;
  boost::system::error_code failed;
  auto value = boost::json::parse({text.data(), text.size()}, failed, in, options);
  if (failed == boost::json::error::too_deep)
    return problem(400, "json_too_deep", "the JSON document is nested too deeply");
  if (failed) return problem(400, "json_invalid", "the body is not JSON: " + failed.message());
  if (repeats_a_member(text, value))
    return problem(400, "json_ambiguous", "the JSON document has a member twice in one object");
  return value;
}

// The body of a request; 415 if its Content-Type says that it is something else.
inline parsed_json parse_json(const request& asked, const json_limits& limits = {},
                              const boost::json::storage_ptr& in = {}) {
  const auto type = asked.headers.find("Content-Type");
  if (type && !detail::is_json_type(*type))
    return problem(415, "json_expected", "the body has to be application/json");
  return parse_json(std::string_view(asked.body), limits, in);
}

inline response json(int status, const boost::json::value& value) {
  return text(status, "application/json", boost::json::serialize(value));
}

}  // namespace settle::inline v0::http

#pragma GCC visibility pop

// JSON bodies of the APIs, without Boost.JSON in every file: reading is in json.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "settle/http.hpp"

namespace shop {

// The members of an object that are texts or integers.
struct json_body {
  std::map<std::string, std::string> texts = {};
  std::map<std::string, std::int64_t> numbers = {};
  int status = 0;
  std::string refused = {};  // the code, if the body is no such object
  std::string detail = {};

  std::string text(const std::string& name, const std::string& otherwise = "") const;
  std::int64_t number(const std::string& name, std::int64_t otherwise = 0) const;
  settle::http::response problem(const settle::http::request& asked) const;
};

json_body read_json(std::string_view body);
json_body read_json(const settle::http::request& asked);

// Writes one object.
class json_object {
 public:
  void text(std::string_view name, std::string_view content);
  void number(std::string_view name, std::int64_t content);
  void raw(std::string_view name, std::string_view json);
  std::string done() const { return "{" + text_ + "}"; }

 private:
  void begin(std::string_view name);
  std::string text_;
};

}  // namespace shop

// JSON as it is stored beside messages: flat objects of strings, and lists.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "settle/event.hpp"

namespace settle::inline v0 {

// An empty map gives an empty string: most events have none, and an empty column costs nothing.
std::string to_json(const attributes& values);

// Throws decode_failed on anything but an object. Values that are not strings become their JSON text.
attributes attributes_from_json(std::string_view text);

// Writes a JSON array of texts, numbers and arrays, for statements that take a whole list as one parameter.
class json_array {
 public:
  json_array& add(std::string_view text);
  json_array& add(std::int64_t number);
  json_array& add(const json_array& nested);
  json_array& add_pair(std::int64_t number, std::string_view text);    // as one nested array
  json_array& add_all(std::initializer_list<std::string_view> texts);  // as one nested array; not empty
  std::string text() const { return "[" + content_ + "]"; }

 private:
  std::string& next();
  std::string content_;
};

}  // namespace settle

// JSON with a member twice in one object, of which one reader takes the first and another one the last. The
// adapter settle/adapter/boost_json_http.hpp has the same for whoever has no library of ours to ask.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string_view>

namespace settle::inline v0 {

// Of all objects in a document.
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

// `text` is what `value` was parsed from. Each member as written has a colon outside of strings; of two with
// one name, one was kept.
inline bool repeats_a_member(std::string_view text, const boost::json::value& value) {
  std::size_t colons = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"')
      in_string = !in_string;
    else if (in_string && text[at] == '\\')
      ++at;
    else if (!in_string && text[at] == ':')
      ++colons;
  }
  return colons != members_of(value);
}

}  // namespace settle::inline v0

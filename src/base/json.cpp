#include "base/json.hpp"

#include <boost/json.hpp>

#include "settle/error.hpp"

namespace settle::inline v0 {

std::string to_json(const attributes& values) {
  if (values.empty()) return {};
  boost::json::object object;
  for (const auto& [name, value] : values) object[name] = value;
  return boost::json::serialize(object);
}

attributes attributes_from_json(std::string_view text) {
  attributes out;
  if (text.empty()) return out;
  // Whoever stored it has checked the encoding; refusing here would block everything behind it.
  boost::json::parse_options lenient;
  lenient.allow_invalid_utf8 = true;
  boost::system::error_code failed;
  const auto parsed = boost::json::parse({text.data(), text.size()}, failed, {}, lenient);
  if (failed || !parsed.is_object())
    throw error(errc::decode_failed, "stored attributes are not a JSON object");
  for (const auto& [name, value] : parsed.get_object()) {
    // Rows that other programs wrote may hold numbers and the like: an attribute is their text.
    out.emplace(std::string(name),
                value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value));
  }
  return out;
}

json_array& json_array::append(std::string_view element) {
  if (!content_.empty()) content_ += ',';
  content_ += element;
  return *this;
}

json_array& json_array::add(std::string_view text) {
  return append(boost::json::serialize(boost::json::string_view(text.data(), text.size())));
}

json_array& json_array::add(std::int64_t number) { return append(std::to_string(number)); }

json_array& json_array::add(const json_array& nested) { return append(nested.text()); }

}  // namespace settle

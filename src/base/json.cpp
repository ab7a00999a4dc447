#include "base/json.hpp"

#include <boost/json.hpp>

#include "settle/error.hpp"

namespace settle {

std::string to_json(const attributes& values) {
  if (values.empty()) return {};
  boost::json::object object;
  for (const auto& [name, value] : values) object[name] = value;
  return boost::json::serialize(object);
}

attributes attributes_from_json(std::string_view text) {
  attributes out;
  if (text.empty()) return out;
  boost::system::error_code failed;
  const auto parsed = boost::json::parse({text.data(), text.size()}, failed);
  if (failed || !parsed.is_object())
    throw error(errc::decode_failed, "stored attributes are not a JSON object");
  for (const auto& [name, value] : parsed.get_object()) {
    if (!value.is_string()) throw error(errc::decode_failed, "a stored attribute is not a string");
    out.emplace(std::string(name), std::string(value.get_string()));
  }
  return out;
}

}  // namespace settle

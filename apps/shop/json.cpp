#include "json.hpp"

#include "settle/adapter/boost_json_http.hpp"

namespace shop {
namespace {

json_body members_of(const settle::http::parsed_json& parsed) {
  json_body made;
  if (!parsed) {
    made.status = parsed.refused().status;
    made.refused = made.status == 413   ? "body_too_large"
                   : made.status == 415 ? "json_expected"
                                        : "json_invalid";
    made.detail = "the body has to be a JSON object with each member once";
    return made;
  }
  if (!parsed->is_object())
    return {.status = 400, .refused = "json_invalid", .detail = "the body is no object"};
  for (const auto& member : parsed->get_object()) {
    const std::string name(member.key());
    if (member.value().is_string()) made.texts[name] = std::string(member.value().get_string());
    if (member.value().is_int64()) made.numbers[name] = member.value().get_int64();
  }
  return made;
}

}  // namespace

std::string json_body::text(const std::string& name, const std::string& otherwise) const {
  const auto found = texts.find(name);
  return found == texts.end() ? otherwise : found->second;
}

std::int64_t json_body::number(const std::string& name, std::int64_t otherwise) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

settle::http::response json_body::problem(const settle::http::request& asked) const {
  return settle::http::problem(status, refused, detail, asked.path);
}

json_body read_json(std::string_view body) { return members_of(settle::http::parse_json(body)); }
json_body read_json(const settle::http::request& asked) {
  return members_of(settle::http::parse_json(asked));
}

void json_object::begin(std::string_view name) {
  if (!text_.empty()) text_ += ',';
  text_ += boost::json::serialize(boost::json::string_view(name.data(), name.size()));
  text_ += ':';
}
void json_object::text(std::string_view name, std::string_view content) {
  begin(name);
  text_ += boost::json::serialize(boost::json::string_view(content.data(), content.size()));
}
void json_object::number(std::string_view name, std::int64_t content) {
  begin(name);
  text_ += std::to_string(content);
}
void json_object::raw(std::string_view name, std::string_view json) {
  begin(name);
  text_ += json;
}

}  // namespace shop

#include "config/webhook_settings.hpp"

namespace settle::config {
namespace {

constexpr std::string_view in_json_prefix = "json:";
constexpr std::string_view in_header_prefix = "header:";

}  // namespace

std::string text_of(const webhook::place& at) {
  if (const auto* member = std::get_if<webhook::in_json>(&at))
    return std::string(in_json_prefix) + member->path;
  if (const auto* named = std::get_if<webhook::in_header>(&at))
    return std::string(in_header_prefix) + named->name;
  return {};
}

std::optional<webhook::place> read_place(std::string_view text) {
  if (text.starts_with(in_json_prefix) && text.size() > in_json_prefix.size())
    return webhook::in_json{std::string(text.substr(in_json_prefix.size()))};
  if (text.starts_with(in_header_prefix) && text.size() > in_header_prefix.size())
    return webhook::in_header{std::string(text.substr(in_header_prefix.size()))};
  return std::nullopt;
}

std::string_view word_of(webhook::scheme of) {
  if (of == webhook::scheme::stripe) return "stripe";
  return of == webhook::scheme::standard ? "standard" : "hmac";
}

webhook::scheme scheme_of(std::string_view word) {
  if (word == "stripe") return webhook::scheme::stripe;
  return word == "standard" ? webhook::scheme::standard : webhook::scheme::hmac;
}

webhook_settings webhook_defaults(std::string_view name, std::string_view scheme) {
  webhook_settings made;
  made.topic = name;
  auto& source = made.source;
  source.name = name;
  source.signature.how = scheme_of(scheme);
  if (source.signature.how == webhook::scheme::hmac) return made;
  const auto usual = source.signature.how == webhook::scheme::stripe ? webhook::stripe(source.name, {})
                                                                     : webhook::standard(source.name, {});
  source.event_id = usual.event_id;
  source.type = usual.type;
  source.key = usual.key;
  source.time = usual.time;
  return made;
}

}  // namespace settle::config

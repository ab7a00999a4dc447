#include "daemon/config/webhook_settings.hpp"

namespace settle::daemon {
namespace {

constexpr std::string_view in_json_prefix = "json:";
constexpr std::string_view in_header_prefix = "header:";

std::string text_of(const webhook::place& at) {
  if (const auto* member = std::get_if<webhook::in_json>(&at))
    return std::string(in_json_prefix) + member->path;
  if (const auto* named = std::get_if<webhook::in_header>(&at))
    return std::string(in_header_prefix) + named->name;
  return {};
}

webhook::scheme scheme_of(std::string_view word) {
  if (word == "stripe") return webhook::scheme::stripe;
  return word == "standard" ? webhook::scheme::standard : webhook::scheme::hmac;
}

webhook::place place_of(std::string_view text) { return read_place(text).value_or(webhook::place{}); }

}  // namespace

webhook_settings webhook_defaults(std::string_view name, std::string_view scheme) {
  webhook_settings made;
  made.name = made.topic = name;
  made.scheme = scheme;
  if (scheme != "stripe" && scheme != "standard") return made;
  const auto of = scheme == "stripe" ? webhook::stripe(made.name, {}) : webhook::standard(made.name, {});
  made.event_id = text_of(of.event_id);
  made.type = text_of(of.type);
  made.key = text_of(of.key);
  made.time = text_of(of.time);
  return made;
}

std::optional<webhook::place> read_place(std::string_view text) {
  if (text.starts_with(in_json_prefix) && text.size() > in_json_prefix.size())
    return webhook::in_json{std::string(text.substr(in_json_prefix.size()))};
  if (text.starts_with(in_header_prefix) && text.size() > in_header_prefix.size())
    return webhook::in_header{std::string(text.substr(in_header_prefix.size()))};
  return std::nullopt;
}

webhook::source source_of(const webhook_settings& from) {
  webhook::source made;
  made.name = from.name;
  made.signature.how = scheme_of(from.scheme);
  made.signature.keys = from.keys;
  made.signature.tolerance = from.tolerance;
  made.signature.header = from.header;
  made.signature.encoding =
      from.encoding == "base64" ? webhook::signature_encoding::base64 : webhook::signature_encoding::hex;
  made.signature.prefix = from.prefix;
  made.event_id = place_of(from.event_id);
  made.type = place_of(from.type);
  made.key = place_of(from.key);
  made.time = place_of(from.time);
  made.ignore_stale = from.ignore_stale;
  made.trust_unsigned_headers = from.trust_unsigned_headers;
  made.body_bytes_max = static_cast<std::size_t>(from.body_bytes_max);
  return made;
}

}  // namespace settle::daemon

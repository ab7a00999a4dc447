#include "wire/structured_event.hpp"

#include <boost/json.hpp>

#include "base/encoding.hpp"
#include "base/text.hpp"
#include "base/time_text.hpp"

namespace settle::inline v0 {
namespace {

std::string_view media_type(std::string_view content_type) {
  return without_outer_space(content_type.substr(0, content_type.find(';')));
}

bool is_json(std::string_view content_type) {
  const auto type = media_type(content_type);
  return type.empty() || type.ends_with("/json") || type.ends_with("+json");
}

std::string text_of(const boost::json::value& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  return boost::json::serialize(value);
}

std::optional<message> read_members(const boost::json::object& from) {
  message read;
  const boost::json::value* data = nullptr;
  for (const auto& one : from) {
    const std::string_view name(one.key().data(), one.key().size());
    if (name == "data") {
      data = &one.value();
    } else if (name == "data_base64") {
      auto bytes = from_base64(text_of(one.value()));
      if (!bytes) return std::nullopt;
      read.payload = std::move(*bytes);
    } else if (!one.value().is_null()) {
      set_attribute(read, name, text_of(one.value()));
    }
  }
  if (data != nullptr)
    read.payload = is_json(read.content_type) ? boost::json::serialize(*data) : text_of(*data);
  return read;
}

}  // namespace

void set_attribute(message& of, std::string_view name, std::string&& value) {
  if (name == "id")
    of.id = std::move(value);
  else if (name == "source")
    of.source = std::move(value);
  else if (name == "type")
    of.type = std::move(value);
  else if (name == "subject")
    of.subject = std::move(value);
  else if (name == "time")
    of.time = from_rfc3339(value).value_or(timestamp{});
  else if (name == "partitionkey")
    of.key = std::move(value);
  else if (name == "datacontenttype")
    of.content_type = std::move(value);
  else if (name != "specversion")
    of.extensions[std::string(name)] = std::move(value);
}

bool is_structured_event(std::string_view content_type) {
  return media_type(content_type) == "application/cloudevents+json";
}

std::optional<message> read_structured_event(std::string_view json) {
  boost::system::error_code failed;
  const auto document = boost::json::parse({json.data(), json.size()}, failed);
  if (failed || !document.is_object() || !document.get_object().contains("specversion")) return std::nullopt;
  return read_members(document.get_object());
}

}  // namespace settle::inline v0
